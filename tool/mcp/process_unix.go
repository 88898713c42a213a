//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, so that its child processes can
// be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process in the group of a started command.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error means that there is no process left
	}
}
