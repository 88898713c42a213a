package runner

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestZombieProcessCountsAsDead(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait() //nolint:errcheck // it was killed
	owner := processScope() + ":" + strconv.Itoa(c.Process.Pid) + ":x"
	if OwnerDead(owner) {
		t.Error("it lives")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !OwnerDead(owner) {
		t.Error("it was killed, and its parent has not waited for it")
	}
	if OwnerDead(processScope() + ":" + strconv.Itoa(os.Getpid()) + ":x") {
		t.Error("this process lives")
	}
}
