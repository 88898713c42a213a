package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput drops what was typed at a terminal and not yet read.
func discardInput(f *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd()))
}
