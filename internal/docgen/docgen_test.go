package docgen_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/docgen"
	"github.com/weir-run/weir/node/builtin"
)

var update = flag.Bool("update", false, "write the generated pages")

// root is the repository, seen from this folder.
const root = "../.."

func TestPagesMatchTheCode(t *testing.T) {
	docs := filepath.Join(root, "docs")
	known := map[string]bool{}
	for _, p := range append(docgen.Pages(builtin.Catalogue().Specs()), storePage(t)) {
		path := filepath.Join(docs, filepath.FromSlash(p.Path))
		known[path] = true
		if *update {
			if err := os.WriteFile(path, []byte(p.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v: run `make generate` and commit", err)
			continue
		}
		if string(got) != p.Text {
			t.Errorf("docs/%s is not as the code says: run `make generate` and commit", p.Path)
		}
	}
	pages, err := filepath.Glob(filepath.Join(docs, "nodes", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		if !known[path] {
			t.Errorf("%s describes a node type that is no more: remove it", path)
		}
	}
}

func storePage(t *testing.T) docgen.Page {
	t.Helper()
	var texts []string
	for _, name := range []string{"tiers.go", "capabilities.go"} {
		data, err := os.ReadFile(filepath.Join(root, "store", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	p, err := docgen.StorePage(texts[0], texts[1])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDocLinksResolve(t *testing.T) {
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, target := range links(string(text)) {
			target, _, _ = strings.Cut(target, "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s: %v", path, target, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// links returns the targets of the Markdown links of a text.
func links(text string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(text, "](")
		if !found {
			return out
		}
		target, rest, found := strings.Cut(rest, ")")
		if !found {
			return out
		}
		out = append(out, target)
		text = rest
	}
}
