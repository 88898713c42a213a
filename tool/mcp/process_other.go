//go:build !unix

package mcptool

import "os/exec"

// ownGroup does nothing, because this system has no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup kills the command; processes that it started may continue.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
