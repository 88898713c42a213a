package runner

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAProcessThatWasKilledIsGoneAlsoBeforeItsParentAsks(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait() //nolint:errcheck // it was killed
	owner := here() + ":" + strconv.Itoa(c.Process.Pid) + ":x"
	if OwnerGone(owner) {
		t.Error("it lives")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !OwnerGone(owner) {
		t.Error("it was killed, and its parent has not waited for it")
	}
	if OwnerGone(here() + ":" + strconv.Itoa(os.Getpid()) + ":x") {
		t.Error("this process lives")
	}
}
