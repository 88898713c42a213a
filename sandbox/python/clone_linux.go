//go:build linux && (amd64 || arm64)

package python

import (
	"syscall"
	"unsafe"
)

// clone creates a child process that makes the system calls and ends. The function must not be split, preempted or
// instrumented for races: the child has only this thread and a copy of its stack, and no Go runtime.
//
//go:nosplit
//go:norace
//go:nocheckptr
func clone(flags uintptr, list []syscallEntry, status uintptr) (pid uintptr, err syscall.Errno) {
	pid, _, err = syscall.RawSyscall6(syscall.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		return pid, err
	}
	var failed [2]int32
	for i := range list {
		c := &list[i]
		r, _, e := syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if e == 0 && c.want != anyResult && int(r) != c.want {
			e = syscall.EIO
		}
		if e != 0 && !c.optional {
			failed[0], failed[1] = int32(i), int32(e)
			break
		}
	}
	//nolint:gosec // G103: an argument of a system call
	_, _, _ = syscall.RawSyscall6(syscall.SYS_WRITE, status, uintptr(unsafe.Pointer(&failed)), unsafe.Sizeof(failed), 0, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_EXIT_GROUP, 127, 0, 0, 0, 0, 0)
	}
}
