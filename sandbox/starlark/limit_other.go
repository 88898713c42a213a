//go:build !linux

package starlark

import "syscall"

// limitMemory does nothing on this system: the child detects its memory use soon after.
func limitMemory(int64) {}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
