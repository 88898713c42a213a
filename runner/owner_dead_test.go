package runner

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestOwnerIsDeadOnlyForAnEndedLocalProcess(t *testing.T) {
	t.Parallel()
	gone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil || host == processScope() {
		host = "another"
	}
	for owner, want := range map[string]bool{
		fmt.Sprintf("%s:%d:x", processScope(), gone.Process.Pid): true,
		fmt.Sprintf("%s:%d:x", processScope(), os.Getpid()):      false,
		fmt.Sprintf("%s:%d:x", processScope(), 1):                false,
		fmt.Sprintf("elsewhere:%d:x", gone.Process.Pid):          false,
		fmt.Sprintf("%s:%d:x", host, gone.Process.Pid):           false, // of that name, and another boot
		"":                      false,
		"sim":                   false,
		"a:b:c":                 false,
		processScope() + ":0:x": false,
	} {
		if got := ownerDead(owner); got != want {
			t.Errorf("%q: dead is %v, want %v", owner, got, want)
		}
	}
}
