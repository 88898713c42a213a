//go:build linux && (amd64 || arm64)

package starlark_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/starlark"
)

// childSyscallMode does in a child what the child that runs code could do, were its
// interpreter at fault.
func childSyscallMode([]string) int {
	starlark.DropSyscalls()
	_, file := os.Open("/etc/hostname")
	made := os.WriteFile(filepath.Join(os.TempDir(), "weir-forgone"), nil, 0o600)
	_, dialled := net.Dial("udp", "127.0.0.1:9")
	started := exec.Command("/bin/true").Run()
	wait := make(chan bool)
	go close(wait)
	<-wait
	fmt.Println(file != nil, made != nil, dialled != nil, started != nil, strings.Contains(fmt.Sprint(file), "not permitted"))
	return 0
}

func TestTheChildGivesUpFilesNetworkAndProcesses(t *testing.T) {
	line := self.Command("forgoing")
	out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
	if err != nil || string(out) != "true true true true true\n" {
		t.Errorf("the child says %s, %v", out, err)
	}
}

func TestCodeRunsInAChildThatHasGivenThemUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	ended := make(chan error, 1)
	go func() {
		_, err := starlark.New(self, starlark.Options{}).Run(ctx, &sandbox.Job{Code: "while True:\n    pass\n"})
		ended <- err
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for filtered := false; !filtered; {
		select {
		case <-look.C:
			filtered = childIsFiltered()
		case err := <-ended:
			t.Fatalf("no child was under a filter of system calls: %v", err)
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("code that was cancelled has no error")
	}
}

// childIsFiltered reports whether a child of this process is under a filter.
func childIsFiltered() bool {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(pids)) {
			status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
			if strings.Contains(string(status), "Seccomp:\t2") {
				return true
			}
		}
	}
	return false
}
