//go:build linux && (amd64 || arm64)

package python

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallList is the list of system calls that a new process makes between clone and the start of the interpreter.
// The list and the memory of its arguments are prepared in advance, because a process that was cloned from a Go
// program cannot use Go's runtime: it has no allocator, no growing stack and no other threads. It also avoids an
// intermediate program, which would take longer to start than the interpreter.
type syscallList struct {
	list   []syscallEntry
	labels []string // the purpose of each call, for errors
	kept   []any    // keeps the memory of arguments reachable
	fd     uintptr  // the descriptor of the next opened file
}

// syscallEntry is one system call.
type syscallEntry struct {
	number uintptr
	args   [6]uintptr
	// want is the required result; -1 means any result except an error. An optional call may fail.
	want     int
	optional bool
}

// anyResult is the want of a call that may return anything except an error.
const anyResult = -1

// add appends a call. Text in args becomes the address of retained memory.
func (c *syscallList) add(what string, number uintptr, args ...any) *syscallEntry {
	one := syscallEntry{number: number, want: anyResult}
	for i, a := range args {
		one.args[i] = c.address(a)
	}
	c.list = append(c.list, one)
	c.labels = append(c.labels, what)
	return &c.list[len(c.list)-1]
}

// address converts an argument for the kernel.
func (c *syscallList) address(a any) uintptr {
	switch t := a.(type) {
	case int:
		return uintptr(t)
	case uintptr:
		return t
	case nil:
		return 0
	case string:
		b := append([]byte(t), 0)
		return addressOf(c, &b[0])
	case []string:
		list := make([]uintptr, 0, len(t)+1)
		for _, s := range t {
			list = append(list, c.address(s))
		}
		list = append(list, 0)
		return addressOf(c, &list[0])
	default:
		panic(fmt.Sprintf("a system call takes no %T", a))
	}
}

// addressOf returns the address of p, which is retained and not moved.
func addressOf[T any](c *syscallList, p *T) uintptr {
	c.kept = append(c.kept, p)
	return uintptr(unsafe.Pointer(p)) //nolint:gosec // G103: an argument of a system call
}

// open appends a call that opens a file, and returns its descriptor: the numbers of descriptors increase from the
// first free one, which is known.
func (c *syscallList) open(what string, number uintptr, args ...any) uintptr {
	one := c.add(what, number, args...)
	one.want = int(c.fd)
	c.fd++
	return c.fd - 1
}

// closeFrom appends a call that closes all descriptors from n on.
func (c *syscallList) closeFrom(n uintptr) {
	c.add("close what is open", unix.SYS_CLOSE_RANGE, n, uintptr(^uint32(0)), 0)
	c.fd = n
}

// begin clones the process and makes the calls in the child; the last of them does not return. A failure is written
// to the file status as two 32-bit numbers, the index of the call and its error. The child never returns from begin.
func (c *syscallList) begin(flags uintptr, status uintptr) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The child must not handle signals before the interpreter has replaced the program, because the handlers need
	// Go's runtime.
	var all, before uint64
	all = ^all
	if err := setSignalMask(&all, &before); err != nil {
		return 0, err
	}
	r, e := clone(flags|uintptr(unix.SIGCHLD), c.list, status)
	err = setSignalMask(&before, nil)
	runtime.KeepAlive(c)
	if e != 0 {
		return 0, e
	}
	return int(r), err
}

// setSignalMask sets the blocked signals of this thread.
func setSignalMask(set, before *uint64) error {
	//nolint:gosec // G103: arguments of a system call
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(before)), 8, 0, 0); e != 0 {
		return e
	}
	return nil
}
