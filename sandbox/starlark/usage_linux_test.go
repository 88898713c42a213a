package starlark_test

import (
	"syscall"
	"testing"
)

// childMemory returns the most that a child of this process took so far, in bytes.
func childMemory(t *testing.T) int64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return u.Maxrss << 10
}
