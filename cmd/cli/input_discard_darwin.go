package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed at a terminal and not yet read.
func discardInput(f *os.File) error {
	const reading = 1 // FREAD of <sys/fcntl.h>
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, reading)
}
