//go:build linux && (amd64 || arm64)

package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-run/weir/sandbox"
)

// explainSetupError converts the failure of a sandbox to an error that names the missing part of the isolation and
// how to enable it, or says that a resource is temporarily exhausted.
func explainSetupError(err error) error {
	e, ok := errors.AsType[*setupError](err)
	if !ok || isTemporary(err) {
		return failed("make a sandbox", err)
	}
	if name, ok := strings.CutPrefix(e.step, "read the file "); ok {
		return failed("give the file "+name+" to the code", e.err)
	}
	return unavailable(e.Error(), remedy(e, readSetting))
}

// isTemporary reports whether the error is caused by exhausted resources, as opposed to a missing feature.
func isTemporary(err error) bool {
	for _, e := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EINTR, unix.EIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// readSetting reads a setting of the kernel, "" if it does not exist.
func readSetting(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// remedy returns what to do about a failed step; read reads settings of the kernel.
func remedy(e *setupError, read func(path string) string) string {
	refused := errors.Is(e.err, unix.EPERM) || errors.Is(e.err, unix.EACCES)
	switch {
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "users may not make namespaces here: sysctl -w kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "the kernel allows no user namespaces: sysctl -w user.max_user_namespaces=15000"
	case errors.Is(e.err, unix.ENOSPC) && e.step == "make namespaces":
		return "all user namespaces that the kernel allows are taken: raise user.max_user_namespaces"
	case refused && read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts user namespaces here: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for weir that allows userns"
	case errors.Is(e.err, unix.ENOSYS):
		return "the kernel is older than Linux 5.13, or something between it and weir hides parts of it (gVisor, an old container runtime)"
	case strings.Contains(e.step, "Landlock"):
		return landlockHint
	case strings.Contains(e.step, "seccomp"):
		return "a kernel with CONFIG_SECCOMP_FILTER"
	case e.step == "make namespaces" && errors.Is(e.err, unix.EINVAL):
		return "a kernel with user, PID, network, IPC, UTS and cgroup namespaces"
	case refused && isSeccompFiltered(read("/proc/self/status")):
		return "the container's seccomp profile refuses it: start the container with a profile that allows clone, mount, pivot_root, open_tree, move_mount and mount_setattr (Docker: --security-opt seccomp=PROFILE.json, and --security-opt apparmor=unconfined where AppArmor is used; Kubernetes: securityContext.seccompProfile), or run weir outside it"
	case refused:
		return "something forbids it that is not one of the kernel's own settings (SELinux, a container runtime); see the audit log"
	default:
		return "see docs/sandbox.md"
	}
}

// isSeccompFiltered reports whether a process status shows that system calls are filtered.
func isSeccompFiltered(status string) bool {
	_, rest, ok := strings.Cut(status, "\nSeccomp:")
	return ok && strings.HasPrefix(strings.TrimSpace(rest), "2")
}

// Probe creates a sandbox and runs code in it.
func (e *Executor) Probe(ctx context.Context) error {
	_, err := e.Run(ctx, &sandbox.Job{Code: ""})
	return err
}

// Examine describes each part of the isolation, and what is missing. It runs code in a sandbox.
func (e *Executor) Examine(ctx context.Context) []Fact {
	in, err := e.installation(ctx)
	if err != nil {
		return []Fact{factOfError("interpreter", err)}
	}
	list := []Fact{
		{Subject: "interpreter", State: StateGood, Detail: fmt.Sprintf("CPython %s, %s", in.Version, in.Executable)},
		landlockFact(in.abi), in.groupFact(),
	}
	r, err := e.Run(ctx, &sandbox.Job{Code: ""})
	if err != nil {
		return append(list, factOfError("isolation", err))
	}
	user := "mapped to this user"
	if os.Geteuid() == 0 {
		user = "mapped to a user that does not exist"
	}
	return append(list,
		Fact{Subject: "namespaces", State: StateGood, Detail: "user (" + user + "), mount, PID, network, IPC, UTS and cgroup; a root of its own, read-only"},
		Fact{Subject: "seccomp", State: StateGood, Detail: "a list of what is allowed; no processes, sockets, mounts, tracing"},
		Fact{Subject: "a run", State: StateGood, Detail: fmt.Sprintf("isolated, %.0f ms", float64(r.Duration.Microseconds())/1000)},
	)
}

func landlockFact(abi int) Fact {
	if abi == 0 {
		return Fact{Subject: "landlock", State: StateBad, Detail: "the kernel has none", Remedy: landlockHint}
	}
	f := Fact{Subject: "landlock", State: StateGood, Detail: fmt.Sprintf("ABI %d", abi)}
	if abi < 6 {
		f.Detail += "; the network and abstract sockets are closed by the namespace and seccomp alone"
	}
	return f
}

func (in *installation) groupFact() Fact {
	if in.groups == nil {
		return Fact{
			Subject: "cgroup", State: StateNote,
			Detail: "none (" + in.noGroups + "); memory is bounded by the limits of the process",
			Remedy: "not needed; to have one, run weir as root, or in a cgroup that it may write",
		}
	}
	return Fact{Subject: "cgroup", State: StateGood, Detail: fmt.Sprintf("version %d, memory, below %s", in.groups.version, in.groups.folder)}
}

// factOfError converts an error to a fact.
func factOfError(about string, err error) Fact {
	f := Fact{Subject: about, State: StateBad, Detail: err.Error()}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		f.Remedy = e.Hint
	}
	return f
}
