package starlark

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// slack is what the runtime maps beside the values of the code: it takes memory
// in pieces of 64 MB.
const slack = 96 << 20

// limitMemory has the kernel refuse a single allocation that goes past the
// limit, which the process could not see coming. RLIMIT_DATA counts what may be
// written; RLIMIT_AS would count the addresses that the runtime reserves too.
func limitMemory(limit int64) {
	most := uint64(limit + slack) //nolint:gosec // limit is positive
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{})
}

// apart starts the child in a group of its own that ends with its parent.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
