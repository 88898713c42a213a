//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// resident returns the most memory that a process had, in bytes.
func resident(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10 // elsewhere it is in KiB
}
