package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// Kind is what a step touches.
type Kind int

// The kinds of steps.
const (
	Journal Kind = iota // a write to the database or its log, or one that makes or removes them
	Sync                // making such writes durable
	Network             // a write to a connection
	Output              // a write to stdout or stderr
	kinds
)

// Step is one thing that a process is about to do and that outlives it.
type Step struct {
	Kind Kind
	Call string // the system call
	Path string // of the file, "socket" for a connection
}

// Process is a program to be run under watch.
type Process struct {
	// Args begin with the program's path.
	Args []string
	Env  []string
	Dir  string
	// Stdin, Stdout and Stderr are files of the caller. Without a Stdin there is
	// nothing to read.
	Stdin, Stdout, Stderr *os.File
	// Data is the database's folder: files below it are the journal.
	Data string
	// Before is called before each step, while the process stands still. The
	// signal that it returns is sent to the process there, if it is not 0: with
	// SIGKILL the step is not taken.
	Before func(Step) syscall.Signal
}

// Run runs the process to its end and returns its exit code, as a shell would
// say it: 128 and the number of the signal that ended it. It uses the kernel's tracing, as a debugger
// does, so the process is as it is shipped: no hook, no library, no fault of
// its own.
func (p *Process) Run() (int, error) {
	type result struct {
		code int
		err  error
	}
	done := make(chan result)
	go func() {
		// Tracing belongs to a thread. It is not given back: it ends with the
		// goroutine.
		runtime.LockOSThread()
		t := tracer{p: p, seen: make(map[int]bool)}
		err := t.run()
		done <- result{t.code, err}
	}()
	r := <-done
	return r.code, r.err
}

// tracer follows the threads of one process from one thread of ours.
type tracer struct {
	p      *Process
	pid    int
	seen   map[int]bool // threads that have stopped before
	killed bool
	ended  bool
	code   int
}

const traceOptions = syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACESYSGOOD | 0x100000 // EXITKILL

func (t *tracer) run() error {
	in, err := t.p.Stdin, error(nil)
	if in == nil {
		if in, err = os.Open(os.DevNull); err != nil {
			return err
		}
		defer in.Close() //nolint:errcheck // only read
	}
	//nolint:gosec // which program to run is what the caller says
	t.pid, err = syscall.ForkExec(t.p.Args[0], t.p.Args, &syscall.ProcAttr{
		Dir: t.p.Dir, Env: t.p.Env, Files: []uintptr{in.Fd(), t.p.Stdout.Fd(), t.p.Stderr.Fd()},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", t.p.Args[0], err)
	}
	var ws syscall.WaitStatus
	if _, err := wait(t.pid, &ws); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(t.pid, traceOptions); err != nil {
		return errors.Join(fmt.Errorf("trace %s: %w", t.p.Args[0], err), syscall.Kill(t.pid, syscall.SIGKILL))
	}
	t.seen[t.pid] = true
	t.resume(t.pid, 0)
	for !t.ended {
		thread, err := wait(-t.pid, &ws) // its group: our thread may have children of others
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if err := t.handle(thread, ws); err != nil {
			return errors.Join(err, syscall.Kill(t.pid, syscall.SIGKILL))
		}
	}
	return nil
}

// wait waits for a process, or a group of them if negative, that this thread
// traces.
func wait(pid int, ws *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, ws, syscall.WALL|syscall.WNOTHREAD, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got, err
		}
	}
}

func (t *tracer) handle(thread int, ws syscall.WaitStatus) error {
	switch {
	case ws.Exited() || ws.Signaled():
		if thread == t.pid {
			t.ended = true
			t.code = ws.ExitStatus()
			if ws.Signaled() {
				t.code = 128 + int(ws.Signal())
			}
		}
		return nil
	case !ws.Stopped():
		return nil
	case ws.StopSignal() == syscall.SIGTRAP|0x80:
		return t.call(thread)
	case ws.StopSignal() == syscall.SIGTRAP && ws.TrapCause() > 0: // a thread was made
		t.resume(thread, 0)
	case ws.StopSignal() == syscall.SIGSTOP && !t.seen[thread]: // this is the thread
		t.seen[thread] = true
		t.resume(thread, 0)
	default:
		t.resume(thread, int(ws.StopSignal()))
	}
	return nil
}

// resume lets a thread run until its next system call. One that has just been
// killed cannot, which shows in the next wait.
func (t *tracer) resume(thread, signal int) {
	_ = syscall.PtraceSyscall(thread, signal)
}

// call looks at a system call that a thread is about to make or has made.
func (t *tracer) call(thread int) error {
	if t.killed {
		return nil
	}
	info, err := syscallInfo(thread)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.op == opEntry {
		if err := t.before(info); err != nil || t.killed {
			return err
		}
	}
	t.resume(thread, 0)
	return nil
}

// before asks what to do before a system call, and does it.
func (t *tracer) before(info callInfo) error {
	s, ok := t.step(info)
	if !ok {
		return nil
	}
	signal := t.p.Before(s)
	if signal == 0 {
		return nil
	}
	t.killed = signal == syscall.SIGKILL
	return syscall.Kill(t.pid, signal)
}

// step says which step a system call is, if it is one.
func (t *tracer) step(info callInfo) (Step, bool) {
	name, kind := "", Journal
	switch info.number {
	case syscall.SYS_PWRITE64:
		name = "pwrite"
	case syscall.SYS_FTRUNCATE:
		name = "ftruncate"
	case syscall.SYS_FSYNC:
		name, kind = "fsync", Sync
	case syscall.SYS_FDATASYNC:
		name, kind = "fdatasync", Sync
	case syscall.SYS_LINKAT:
		return Step{Journal, "link", "new name"}, true
	case syscall.SYS_UNLINKAT:
		return Step{Journal, "unlink", "old name"}, true
	case syscall.SYS_WRITE:
		name = "write"
	default:
		return Step{}, false
	}
	fd := int(info.args[0])
	path, err := os.Readlink("/proc/" + strconv.Itoa(t.pid) + "/fd/" + strconv.Itoa(fd))
	switch {
	case err != nil:
		return Step{}, false
	case path == t.p.Data || strings.HasPrefix(path, t.p.Data+string(filepath.Separator)):
		return Step{kind, name, path}, true
	case name != "write":
		return Step{}, false
	case fd == 1 || fd == 2:
		return Step{Output, name, path}, true
	case strings.HasPrefix(path, "socket:"):
		return Step{Network, name, "socket"}, true
	}
	return Step{}, false // it wakes a thread of its own
}

// callInfo is what the kernel says of a system call, ptrace_syscall_info of
// <linux/ptrace.h>.
type callInfo struct {
	op     uint8
	_      [3]byte
	_      uint32 // architecture
	_      [2]uint64
	number uint64
	args   [6]uint64
}

const (
	opEntry        = 1      // PTRACE_SYSCALL_INFO_ENTRY
	getSyscallInfo = 0x420e // PTRACE_GET_SYSCALL_INFO
)

func syscallInfo(thread int) (callInfo, error) {
	var info callInfo
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(thread),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0) //nolint:gosec // the kernel fills in what is as long as it says
	if errno != 0 {
		return info, fmt.Errorf("ptrace: %w", errno)
	}
	return info, nil
}
