//go:build linux && (amd64 || arm64)

package python

import (
	"time"

	"golang.org/x/sys/unix"
)

// lastCapability is the highest one that is dropped; the kernel has fewer.
const lastCapability = 63

// dropPrivileges prevents the process from gaining privileges by executing another program.
func (p *jobPlan) dropPrivileges(c *syscallList) {
	for i := range lastCapability + 1 {
		c.add("drop a capability", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0, 0, 0).optional = i > unix.CAP_LAST_CAP
	}
	c.add("drop ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	c.add("give up new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	c.add("leave the session", unix.SYS_SETSID)
}

// dropCapabilities drops all capabilities.
func (p *jobPlan) dropCapabilities(c *syscallList) {
	c.add("drop all capabilities", unix.SYS_CAPSET, addressOf(c, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), addressOf(c, &[2]unix.CapUserData{}))
}

// resetSignals restores the default action of every signal and unblocks all.
func (p *jobPlan) resetSignals(c *syscallList) {
	plain := addressOf(c, &[4]uint64{})
	for s := 1; s <= 64; s++ {
		if s == int(unix.SIGKILL) || s == int(unix.SIGSTOP) {
			continue
		}
		c.add("reset a signal", unix.SYS_RT_SIGACTION, s, plain, nil, 8)
	}
	c.add("let signals through", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, plain, nil, 8)
}

// disableCoreDumps prevents core dumps. With limit 1 the kernel does not start a core dump program either; with limit
// 0 it does.
func (p *jobPlan) disableCoreDumps(c *syscallList) {
	c.add("set a limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, addressOf(c, &unix.Rlimit{Cur: 1, Max: 1}), nil)
}

// rlimits are set last: until then the process is a Go program, which may need more than these limits.
func (p *jobPlan) rlimits(c *syscallList) {
	seconds := uint64((p.time+time.Second-1)/time.Second)*uint64(max(1, p.tasks)) + 1
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, uint64(p.disk)},
		{unix.RLIMIT_NOFILE, 256},
		{unix.RLIMIT_NPROC, uint64(p.tasks)},
		{unix.RLIMIT_STACK, 8 << 20},
		{rlimitMemlock, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_RTPRIO, 0},
		{unix.RLIMIT_SIGPENDING, 256},
		{unix.RLIMIT_AS, uint64(p.memory + interpreterAddressSpace)},
	} {
		c.add("set a limit", unix.SYS_PRLIMIT64, 0, l.resource, addressOf(c, &unix.Rlimit{Cur: l.most, Max: l.most}), nil)
	}
}

// interpreterAddressSpace is the address space that the interpreter needs for itself, in bytes.
const interpreterAddressSpace = 64 << 20

// oneArena is the only environment variable of the interpreter, which removes it. Without
// it, glibc reserves 64 MB of address space for each thread.
const oneArena = "MALLOC_ARENA_MAX=1"

// rlimitMemlock limits locked memory.
const rlimitMemlock = 8
