//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, so that what it
// starts can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends every process of the group of a command that was started.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none left is what is wanted
	}
}
