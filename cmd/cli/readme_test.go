package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blocks returns the code blocks of the README in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("the README has no %s", language)
	}
	return out
}

func TestReadmeShowsTheGoExample(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "hello", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range blocks(t, "go") {
		if !strings.Contains(string(b), code) {
			t.Errorf("not in examples/hello/main.go:\n%s", code)
		}
	}
}

func TestReadmeFlowIsValid(t *testing.T) {
	t.Parallel()
	cat, err := app.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range blocks(t, "yaml") {
		if !strings.HasPrefix(code, "weir: 1") {
			continue
		}
		if _, err := flow.Parse("README.md", []byte(code), cat); err != nil {
			t.Error(err)
		}
	}
}

func TestReadmeListsEveryFolder(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text := readme(t)
	for _, e := range entries {
		if name := e.Name() + "/"; e.IsDir() && !strings.HasPrefix(name, ".") && !strings.Contains(text, "\n"+name) {
			t.Errorf("the README's tree lacks %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([a-z][^):#\s"]*)(?:#[^)\s]*)?\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", m[1])); err != nil {
			t.Errorf("the README links to what is not there: %v", err)
		}
	}
}
