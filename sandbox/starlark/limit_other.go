//go:build !linux

package starlark

import "syscall"

// limitMemory does nothing here: the child sees what it takes soon after.
func limitMemory(int64) {}

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
