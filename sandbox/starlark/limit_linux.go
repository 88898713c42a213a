package starlark

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// runtimeReserve is the address space of the runtime besides the code's values: it reserves addresses in units of 64
// MB, and with the C library 8 MB for each thread's stack.
const runtimeReserve = 160 << 20

// limitMemory makes the kernel refuse a single allocation beyond the limit, which the process could not detect in
// time. The address space that the runtime has reserved at the start is added. (RLIMIT_DATA does not work: the kernel
// counts reserved memory as used when the runtime maps over it.)
func limitMemory(limit int64) {
	most := uint64(reservedAddressSpace() + limit + runtimeReserve)
	_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{})
}

// reservedAddressSpace returns the size of the process's address space.
func reservedAddressSpace() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		first, _, _ := bytes.Cut(data, []byte(" "))
		if pages, err := strconv.ParseInt(string(first), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	const usual = 2 << 30
	return usual
}

// childAttributes starts the child in its own process group and ends it with its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
