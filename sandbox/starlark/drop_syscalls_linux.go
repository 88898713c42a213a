//go:build linux && (amd64 || arm64)

package starlark

import (
	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// allowedSyscalls returns the system calls of a running Go program: reading and writing open files, memory, threads, time
// and signals to itself.
func allowedSyscalls() []string {
	return []string{
		"read", "write", "close", "fcntl", "pread64", "lseek", "fstat", "newfstatat",
		"mmap", "munmap", "mprotect", "madvise", "mincore", "mremap", "brk",
		"futex", "sched_yield", "sched_getaffinity", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday",
		"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "poll", "ppoll", "pselect6",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "tgkill", "restart_syscall",
		"getpid", "gettid", "set_robust_list", "rseq", "set_tid_address", "arch_prctl", "prctl",
		"getrandom", "getrlimit", "getrusage", "setitimer", "timer_create", "timer_settime", "timer_delete",
		"exit", "exit_group",
	}
}

// newNamespaces are flags that clone must not have.
const newNamespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS |
	unix.CLONE_NEWPID | unix.CLONE_NEWTIME | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS

// dropSyscalls forbids all other system calls, including files and the network, for all threads. The language cannot
// make system calls; this protects against a fault in the interpreter. It does nothing if the kernel has no such
// filters.
func dropSyscalls() {
	info, err := arch.GetInfo("")
	if err != nil {
		return
	}
	names := make([]string, 0, len(allowedSyscalls()))
	for _, n := range allowedSyscalls() {
		if _, ok := info.SyscallNames[n]; ok {
			names = append(names, n)
		}
	}
	thread := seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{
		{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD},
		{Argument: 0, Operation: seccomp.BitsNotSet, Value: newNamespaces},
	}}
	_ = seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
			{Names: names, NamesWithCondtions: []seccomp.NameWithConditions{thread}, Action: seccomp.ActionAllow},
			// Its flags are not visible to the filter; without it the C library creates threads with clone.
			{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
		}},
	})
}
