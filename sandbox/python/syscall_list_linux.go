//go:build linux && (amd64 || arm64)

package python

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallList is a list of system calls that a new process makes between its birth and
// the interpreter. It is written out beforehand, down to the memory that the
// arguments point to, because a process that was cloned out of a program in Go
// may not use Go's runtime: no memory, no stack that grows, no other thread. It
// is also why no program has to be started in between, which would cost more
// than the interpreter itself.
type syscallList struct {
	list   []syscallEntry
	labels []string // what each is for, to tell which has failed
	kept   []any    // what the arguments point to
	fd     uintptr  // the number that the next file to be opened gets
}

// syscallEntry is one system call.
type syscallEntry struct {
	number uintptr
	args   [6]uintptr
	// want is the result it must have; -1 is any that is no error. A call that is
	// optional may fail.
	want     int
	optional bool
}

// anyResult that is no error is the result a call wants.
const anyResult = -1

// add appends a call. Text in args becomes the address of memory that is kept.
func (c *syscallList) add(what string, number uintptr, args ...any) *syscallEntry {
	one := syscallEntry{number: number, want: anyResult}
	for i, a := range args {
		one.args[i] = c.address(a)
	}
	c.list = append(c.list, one)
	c.labels = append(c.labels, what)
	return &c.list[len(c.list)-1]
}

// address is an argument as the kernel takes it.
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

// addressOf is the address of p, which is kept where it is.
func addressOf[T any](c *syscallList, p *T) uintptr {
	c.kept = append(c.kept, p)
	return uintptr(unsafe.Pointer(p)) //nolint:gosec // G103: an argument of a system call
}

// open appends a call that opens a file, and returns its number: files are
// numbered upwards from the first free one, which is known.
func (c *syscallList) open(what string, number uintptr, args ...any) uintptr {
	one := c.add(what, number, args...)
	one.want = int(c.fd)
	c.fd++
	return c.fd - 1
}

// closeFrom appends a call that closes all files from n on.
func (c *syscallList) closeFrom(n uintptr) {
	c.add("close what is open", unix.SYS_CLOSE_RANGE, n, uintptr(^uint32(0)), 0)
	c.fd = n
}

// begin clones the process and, in the child, makes the calls; the last of them
// does not return. What fails is written to the file status as two 32-bit
// numbers, the index of the call and its error. Nothing of the child's returns.
func (c *syscallList) begin(flags uintptr, status uintptr) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// No signal may be handled in the child before the interpreter has replaced
	// the program: its handlers need Go's runtime.
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

// setSignalMask says which signals are held back from this thread.
func setSignalMask(set, before *uint64) error {
	//nolint:gosec // G103: arguments of a system call
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(before)), 8, 0, 0); e != 0 {
		return e
	}
	return nil
}
