//go:build linux && (amd64 || arm64)

package starlark_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/sandbox/starlark"
)

// forgoing does in a child what the child that runs code could do, were its
// interpreter at fault.
func forgoing([]string) int {
	starlark.Forgo()
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
