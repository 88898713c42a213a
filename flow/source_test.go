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

func TestLinksOutOfTheFolderAreReportedAsFilesOutsideOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, folder := range []string{in, out} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	child := "weir: 1\nname: child\nnodes:\n  t: {type: template, with: {text: hi}}\n"
	if err := os.WriteFile(filepath.Join(out, "child.yaml"), []byte(child), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, link := range map[string]string{out: "folder", filepath.Join(out, "child.yaml"): "file.yaml"} {
		if err := os.Symlink(target, filepath.Join(in, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, path := range []string{"./folder/child.yaml", "./file.yaml", "../out/child.yaml"} {
		parent := filepath.Join(in, "parent.yaml")
		if err := os.WriteFile(parent, []byte("weir: 1\nname: parent\nnodes:\n  r: {type: flow, with: {flow: "+path+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := flow.Load(parent, testCatalogue()); err == nil || !strings.Contains(err.Error(), "outside of the folders") || !strings.Contains(err.Error(), "flows.folders") {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := flow.Load(parent, testCatalogue(), out); path == "../out/child.yaml" && err != nil {
			t.Errorf("%s with the folder: %v", path, err)
		}
	}
}
