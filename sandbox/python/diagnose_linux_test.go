//go:build linux && (amd64 || arm64)

package python

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

func TestMissingFeaturesAreReportedWithRemedy(t *testing.T) {
	for _, tt := range []struct {
		step     string
		err      error
		settings map[string]string
		want     string
	}{
		{"make namespaces", syscall.EPERM, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"},
		{"make namespaces", syscall.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "user.max_user_namespaces=15000"},
		{"make namespaces", syscall.ENOSPC, nil, "raise user.max_user_namespaces"},
		{"make namespaces", syscall.EINVAL, nil, "a kernel with user, PID"},
		{"make namespaces", syscall.EPERM, map[string]string{"/proc/self/status": "Name:\tx\nSeccomp:\t2\n"}, "--security-opt seccomp"},
		{"map the user (uid_map)", syscall.EPERM, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "apparmor_restrict_unprivileged_userns=0"},
		{"mount a root", syscall.EACCES, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "apparmor_restrict_unprivileged_userns=0"},
		{"mount a root", syscall.EPERM, map[string]string{"/proc/self/status": "x\nSeccomp:\t0\n"}, "SELinux"},
		{"show /usr/lib", syscall.ENOSYS, nil, "older than Linux 5.13"},
		{"make Landlock rules", syscall.EOPNOTSUPP, nil, "lsm="},
		{"load the seccomp filter", syscall.EINVAL, nil, "CONFIG_SECCOMP_FILTER"},
	} {
		got := remedy(&setupError{tt.step, tt.err}, func(path string) string { return tt.settings[path] })
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v: the remedy is %q", tt.step, tt.err, got)
		}
	}
}

func TestShortageOfResourcesIsRetried(t *testing.T) {
	for err, code := range map[error]string{
		syscall.EAGAIN: engine.CodeSandboxFailed, syscall.ENOMEM: engine.CodeSandboxFailed, syscall.EPERM: engine.CodeSandboxUnavailable,
	} {
		e, ok := errors.AsType[*sandbox.Error](explainSetupError(&setupError{"make namespaces", err}))
		if !ok || e.Code != code || e.Retry != (code == engine.CodeSandboxFailed) {
			t.Errorf("%v is %#v", err, e)
		}
	}
}

func TestACallThatFailsIsNamed(t *testing.T) {
	e := New(Options{})
	if err := e.Probe(t.Context()); err != nil {
		t.Skip(err)
	}
	p, err := e.plan(e.found, &sandbox.Job{}, e.limits(sandbox.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	in := *p.installation
	in.binds = append(in.binds, bindMount{from: "/nowhere", to: "/nowhere", folder: true})
	p.installation = &in
	_, err = p.start()
	if err == nil || !strings.Contains(err.Error(), "show /nowhere: no such file") {
		t.Errorf("the error is %v", err)
	}
}
