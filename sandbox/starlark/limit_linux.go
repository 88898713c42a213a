package starlark

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// runtimeReserve is what the runtime takes beside the values of the code: it takes
// addresses in pieces of 64 MB, and with the C library 8 MB for each thread's
// stack.
const runtimeReserve = 160 << 20

// limitMemory has the kernel refuse a single allocation that goes past the
// limit, which the process could not see coming. What the runtime has reserved
// when it begins comes on top. (RLIMIT_DATA would not do: the kernel takes what
// is reserved for what is there when the runtime maps over it.)
func limitMemory(limit int64) {
	most := uint64(reservedAddressSpace() + limit + runtimeReserve)
	_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{})
}

// reservedAddressSpace is how many bytes of addresses the process has.
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

// childAttributes starts the child in a group of its own that ends with its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
