//go:build linux && (amd64 || arm64)

package python

import (
	"fmt"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowedSyscalls returns the system calls of Python code that computes, reads and writes files in /tmp, and uses
// threads. All others are refused: processes, sockets except pairs, mounts, namespaces, keys, tracing, BPF, io_uring,
// memory files, and those of later kernels.
func allowedSyscalls() []string {
	return []string{
		// files
		"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
		"open", "openat", "close", "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "lseek",
		"access", "faccessat", "faccessat2", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir",
		"unlink", "unlinkat", "rename", "renameat", "renameat2", "symlink", "symlinkat", "link", "linkat",
		"readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "truncate", "ftruncate", "fallocate",
		"fsync", "fdatasync", "flock", "fcntl", "dup", "dup2", "dup3", "getdents", "getdents64", "umask",
		"statfs", "fstatfs", "utime", "utimes", "utimensat", "futimesat", "pipe", "pipe2", "sendfile",
		"copy_file_range", "fadvise64", "mknod", "mknodat",
		// memory
		"mmap", "mprotect", "munmap", "mremap", "madvise", "brk", "msync", "mincore",
		// signals
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
		"sigaltstack", "kill", "tgkill", "tkill", "pause", "alarm", "setitimer", "getitimer", "restart_syscall",
		// waiting
		"select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
		"eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_gettime",
		"nanosleep", "clock_nanosleep", "sched_yield", "futex", "set_robust_list", "get_robust_list", "rseq", "membarrier",
		// asyncio uses a socket pair for wakeups
		"sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "getsockname", "getpeername", "getsockopt", "setsockopt",
		// time and identity
		"clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getpid", "getppid", "gettid",
		"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgrp", "getpgid", "getsid",
		"uname", "sysinfo", "getrusage", "getrlimit", "getrandom", "getcpu", "getpriority",
		"sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
		// the process itself
		"arch_prctl", "set_tid_address", "exit", "exit_group", "wait4", "waitid", "execve",
	}
}

// hiddenSyscalls are reported as missing, so that libraries use allowed ones instead.
func hiddenSyscalls() []string {
	return []string{
		"clone3", "openat2", "fchmodat2", "epoll_pwait2", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue",
		"pidfd_open", "pidfd_send_signal", "mseal", "map_shadow_stack", "cachestat", "process_madvise", "statmount", "listmount",
	}
}

const (
	namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS |
		unix.CLONE_NEWPID | unix.CLONE_NEWTIME | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS
	fionread, fionbio, fioclex, fionclex, tcgets, tiocgwinsz = 0x541b, 0x5421, 0x5451, 0x5450, 0x5401, 0x5413
)

// restrictedSyscalls are allowed with some arguments only.
func restrictedSyscalls() []seccomp.NameWithConditions {
	equal := func(name string, arg uint32, values ...uint64) (list []seccomp.NameWithConditions) {
		for _, v := range values {
			list = append(list, seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{
				{Argument: arg, Operation: seccomp.Equal, Value: v},
			}})
		}
		return list
	}
	list := equal("ioctl", 1, fionread, fionbio, fioclex, fionclex, tcgets, tiocgwinsz)
	list = append(list, equal("socketpair", 0, unix.AF_UNIX)...)
	list = append(list, equal("prctl", 0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE)...)
	// Limits may be read, and lowered except that of core dumps: see noCore.
	list = append(list,
		seccomp.NameWithConditions{Name: "setrlimit", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.NotEqual, Value: unix.RLIMIT_CORE}}},
		seccomp.NameWithConditions{Name: "prlimit64", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.NotEqual, Value: unix.RLIMIT_CORE}}},
		seccomp.NameWithConditions{Name: "prlimit64", Conditions: seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.Equal, Value: 0}}})
	return append(list, seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{ // a thread
		{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD},
		{Argument: 0, Operation: seccomp.BitsNotSet, Value: namespaces},
	}})
}

// filter returns the list as a BPF program for the kernel.
func filter() (*unix.SockFprog, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("find the system calls of this machine: %w", err)
	}
	known := func(names []string) (list []string) {
		for _, n := range names {
			if _, ok := info.SyscallNames[n]; ok {
				list = append(list, n)
			}
		}
		return list
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Names: known(allowedSyscalls()), NamesWithCondtions: restrictedSyscalls(), Action: seccomp.ActionAllow},
		{Names: known(hiddenSyscalls()), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
	}}
	instructions, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("write the seccomp filter: %w", err)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("assemble the seccomp filter: %w", err)
	}
	program := make([]unix.SockFilter, 0, len(raw))
	for _, r := range raw {
		program = append(program, unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	return &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}, nil
}
