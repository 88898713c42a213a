package flow_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

func TestOnlyRegularFilesAreReadAsFlows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	dir := t.TempDir()
	for name, path := range map[string]string{"a device": os.DevNull} {
		if _, err := (flow.OSFiles{}).Read(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	parent := filepath.Join(dir, "parent.yaml")
	text := "weir: 1\nname: parent\nnodes:\n  r: {type: flow, with: {flow: " + os.DevNull + "}}\n"
	if err := os.WriteFile(parent, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Load(parent, testCatalogue(), filepath.Dir(os.DevNull)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a flow that names a device: %v", err)
	}
}
