//go:build linux && (amd64 || arm64)

package python_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

// TestASandboxEndsWithTheProcessThatStartedIt kills a process of this program in
// the middle of a job.
func TestASandboxEndsWithTheProcessThatStartedIt(t *testing.T) {
	const variable = "WEIR_TEST_SLEEP_IN_A_SANDBOX"
	if os.Getenv(variable) != "" {
		_, err := python.New(python.Options{}).Run(t.Context(), &sandbox.Job{Code: "import threading, time\nfor _ in range(2):\n    threading.Thread(target=time.sleep, args=(40,)).start()\n"})
		t.Fatal("the job ended", err)
	}
	ready(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), variable+"=1")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	begun := func() bool { return len(childrenOf(c.Process.Pid)) > 0 }
	if !until(20*time.Second, begun) {
		t.Fatal("no sandbox was begun")
	}
	sandboxes := childrenOf(c.Process.Pid)
	_ = c.Process.Kill()
	_ = c.Wait()
	if !until(20*time.Second, func() bool { return len(alive(sandboxes)) == 0 }) {
		t.Errorf("%v outlived what started them", alive(sandboxes))
	}
}

// until waits for a condition.
func until(most time.Duration, holds func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); time.Now().Before(end); <-tick.C {
		if holds() {
			return true
		}
	}
	return holds()
}

// childrenOf returns the interpreters of a parent whose code has begun: it has
// threads.
func childrenOf(parent int) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range paths {
		status, _ := os.ReadFile(filepath.Join(p, "status"))
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) && strings.Contains(string(line), "\x00py-") && strings.Contains(string(status), "\nThreads:\t3\n") {
			found = append(found, p)
		}
	}
	return found
}

// alive returns those of the processes that still have a command line.
func alive(list []string) (found []string) {
	for _, p := range list {
		if line, err := os.ReadFile(filepath.Join(p, "cmdline")); err == nil && len(line) > 0 {
			found = append(found, p)
		}
	}
	return found
}
