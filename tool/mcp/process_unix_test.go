//go:build unix

package mcptool_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCloseEndsServerProcesses(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"yes", "deaf"} {
		s := stdio(t)
		s.Env[asServer] = kind
		c := client(t, s, lock(t))
		set := accepted(t, c)
		pids, err := call(t, set, "spawn", "")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: Close took %v", kind, took)
		}
		for field := range strings.FieldsSeq(pids) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if !gone(pid) {
				t.Errorf("%s: process %d is left of %s", kind, pid, pids)
			}
		}
		if _, err := call(t, set, "echo", `{"text":"a"}`); err == nil || !strings.Contains(err.Error(), "is closed") {
			t.Errorf("got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// gone waits for a process to end; one that was not waited for yet, as its
// parent was killed with it, has ended too.
func gone(pid int) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}
