//go:build !linux

package starlark

import "syscall"

// limitMemory does nothing here: the child sees what it takes soon after.
func limitMemory(int64) {}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
