package flow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

func TestUsedFlowsAreReadOnlyFromTheFolderOfTheFlowOrAllowedFolders(t *testing.T) {
	const child = "weir: 1\nname: child\nnodes:\n  a: {type: template, with: {text: x}}\n"
	parent := func(ref string) string {
		return "weir: 1\nname: parent\nnodes:\n  c: {type: flow, with: {flow: " + ref + "}}\n"
	}
	root := foldersWithLinks(t, child)
	shared := filepath.Join(root, "shared")
	for _, c := range []struct {
		name, ref string
		folders   []string
		valid     bool
	}{
		{"beside the flow", "child.yaml", nil, true},
		{"below", "below/child.yaml", nil, true},
		{"below by a detour", "below/../child.yaml", nil, true},
		{"link within", "in.yaml", nil, true},
		{"outside", "../shared/child.yaml", nil, false},
		{"outside by an absolute path", filepath.Join(shared, "child.yaml"), nil, false},
		{"a folder whose name begins alike", "../projectx/child.yaml", nil, false},
		{"link that leads out", "out.yaml", nil, false},
		{"folder that leads out", "folder/child.yaml", nil, false},
		{"allowed folder", "../shared/child.yaml", []string{shared}, true},
		{"allowed folder by an absolute path", filepath.Join(shared, "child.yaml"), []string{shared}, true},
		{"another folder allowed", "../projectx/child.yaml", []string{shared}, false},
		{"absent outside", "../shared/absent.yaml", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(root, "project", "parent.yaml")
			if err := os.WriteFile(file, []byte(parent(c.ref)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := flow.Load(file, testCatalogue(), c.folders...)
			if c.valid && err != nil {
				t.Fatal(err)
			}
			if !c.valid && (err == nil || strings.Contains(err.Error(), "does not exist")) {
				t.Fatalf("error %v; want a refusal that does not tell whether the file exists", err)
			}
		})
	}
}

// foldersWithLinks returns a folder with folders that hold the flow child.yaml, and links
// between them.
func foldersWithLinks(t *testing.T, child string) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"shared", "project", "project/below", "projectx"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "child.yaml"), []byte(child), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"project/out.yaml": "../shared/child.yaml", "project/in.yaml": "below/child.yaml", "project/folder": "../shared",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	return root
}
