package docgen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
)

// fences returns the code blocks of a page that are in a language, by the line
// they begin at.
func fences(t *testing.T, page, language string) map[int]string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]string{}
	begin := -1
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		switch {
		case begin < 0 && line == "```"+language:
			begin = i + 1
		case begin >= 0 && line == "```":
			out[begin+1] = strings.Join(lines[begin:i], "\n") + "\n"
			begin = -1
		}
	}
	return out
}

func TestDocFlowsAreValid(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		blocks := fences(t, page, "yaml")
		files := flow.MemFiles{} // those that say which file they are
		for _, text := range blocks {
			if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# ") && strings.HasSuffix(first, ".yaml") {
				files[first[2:]] = text
			}
		}
		for line, text := range blocks {
			name := fmt.Sprintf("%s:%d", filepath.Base(page), line)
			if !strings.HasPrefix(text, "weir:") {
				continue // a configuration, or a part of a flow
			}
			found++
			if _, err := (flow.Source{Files: files}).Parse(name, []byte(text), builtin.Catalogue()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d flows were found: does the test read the docs?", found)
	}
}
