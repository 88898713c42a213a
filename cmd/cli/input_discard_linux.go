package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed at a terminal and not yet read.
func discardInput(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
