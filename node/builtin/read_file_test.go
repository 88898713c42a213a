package builtin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/store/memory"
)

// fileTree makes a folder with files, folders and links, and a file outside of it.
func fileTree(t *testing.T) (folder, outside string) {
	t.Helper()
	folder, outside = t.TempDir(), filepath.Join(t.TempDir(), "secret.txt")
	for path, text := range map[string]string{
		outside: "secret", filepath.Join(folder, "note.txt"): "note", filepath.Join(folder, "data.json"): `{"n": 1}`, filepath.Join(folder, "raw.bin"): "\xff\x00",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": outside, "in": "note.txt"} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	return folder, outside
}

func TestReadFileReadsRegularFilesInsideTheFolderOnly(t *testing.T) {
	t.Parallel()
	folder, outside := fileTree(t)
	w := open(t, weir.Options{Store: memory.New()})
	for i, c := range []struct{ path, more, text string }{
		{"note.txt", "", "note"},
		{"sub/../note.txt", "", "note"},
		{"in", "", "note"},
		{"data.json", "", `{"n": 1}`},
		{"raw.bin", "", "base64:/wA="},
		{"out", "", "refused"},
		{"sub", "", "refused"},
		{"none", "", "refused"},
		{"../x", "", "refused"},
		{outside, "", "refused"},
		{outside, ", allowOutside: true", "secret"},
		{"/dev/zero", ", allowOutside: true", "refused"},
		{"note.txt", ", maxBytes: 3", "refused"},
	} {
		path := `"{{ run.inputs.path }}"`
		if strings.Contains(c.more, "allowOutside") {
			path = c.path
		}
		file := filepath.Join(folder, "flow.yaml")
		text := "weir: 1\nname: f\ninputs: {path: {type: text}}\nnodes:\n  read: {type: readFile, with: {path: " + path + c.more + "}}\n" +
			"outputs: {text: \"{{ read.text }}\", base64: \"{{ read.base64 }}\"}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := w.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: fmt.Sprint("run", i), Inputs: map[string]any{"path": c.path}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := readResult(r); got != c.text {
			t.Errorf("%s%s gives %q, expected %q: %v", c.path, c.more, got, c.text, r.Error)
		}
	}
}

// readResult returns what the node gave: a text, base64, or that it was refused.
func readResult(r weir.Result) string {
	if r.Error != nil && r.Error.Code == builtin.CodeFileUnreadable {
		return "refused"
	}
	if text, ok := r.Outputs.Get("text"); ok {
		return fmt.Sprint(text)
	}
	coded, _ := r.Outputs.Get("base64")
	return fmt.Sprint("base64:", coded)
}
