package docgen_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proofPattern is `package: Test`, `package: Test/scenario` or, of a conformance
// suite, `package: name of the case`.
var proofPattern = regexp.MustCompile("`([a-z0-9./]+): ([^`]+)`")

func TestGuaranteesNameExistingTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	funcs, texts := named(t)
	for _, bullet := range strings.Split(string(page), "\n- ")[1:] {
		proofs := proofPattern.FindAllStringSubmatch(bullet, -1)
		if len(proofs) == 0 || !strings.Contains(bullet, "Proof:") {
			t.Errorf("nothing proves: %.60s", bullet)
		}
		for _, p := range proofs {
			name, scenario, _ := strings.Cut(p[2], "/")
			switch {
			case !funcs[p[1]+": "+name] && !texts[p[1]+": "+p[2]]:
				t.Errorf("there is no test %s", p[0])
			case scenario != "" && !scenarioExists(p[1], scenario):
				t.Errorf("there is no scenario %s", p[0])
			}
		}
	}
}

// The tables of the page name tests too.
func TestTablesOfGuaranteesNameExistingTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	funcs, texts := named(t)
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| class |") {
			continue
		}
		rows++
		proofs := proofPattern.FindAllStringSubmatch(line, -1)
		found := false
		for _, p := range proofs {
			name, scenario, _ := strings.Cut(p[2], "/")
			exists := funcs[p[1]+": "+name] || texts[p[1]+": "+p[2]]
			found = found || exists
			if strings.HasPrefix(p[2], "Test") && (!exists || scenario != "" && !scenarioExists(p[1], scenario)) {
				t.Errorf("there is no test %s", p[0])
			}
		}
		if !found {
			t.Errorf("nothing proves: %.60s", line)
		}
	}
	if rows < 20 {
		t.Errorf("the tables have %d rows", rows)
	}
}

func TestPromisesNameExistingTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	funcs, texts := named(t)
	kept, _, _ := strings.Cut(string(page), "## Decided differently")
	rows := 0
	for line := range strings.Lines(kept) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise") {
			continue
		}
		rows++
		proofs := proofPattern.FindAllStringSubmatch(line, -1)
		if len(proofs) == 0 {
			t.Errorf("nothing proves: %.60s", line)
		}
		for _, p := range proofs {
			name, scenario, _ := strings.Cut(p[2], "/")
			if !funcs[p[1]+": "+name] && !texts[p[1]+": "+p[2]] || scenario != "" && !scenarioExists(p[1], scenario) {
				t.Errorf("there is no test %s", p[0])
			}
		}
	}
	if rows < 60 {
		t.Errorf("the page has %d rows", rows)
	}
}

// named lists the functions of test files and all texts, each as
// "package: name".
func named(t *testing.T) (funcs, texts map[string]bool) {
	t.Helper()
	funcs, texts = map[string]bool{}, map[string]bool{}
	source(t, func(file string, f *ast.File, _ func(ast.Node) token.Position) {
		dir := path.Dir(file)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if strings.HasSuffix(file, "_test.go") && n.Recv == nil {
					funcs[dir+": "+n.Name.Name] = true
				}
			case *ast.BasicLit:
				if s, ok := text(n); ok {
					texts[dir+": "+s] = true
				}
			}
			return true
		})
	})
	return funcs, texts
}

// scenarioExists reports whether the package has a test file of that name.
func scenarioExists(dir, scenario string) bool {
	for _, pattern := range []string{"testdata/" + scenario + ".*", "testdata/*/" + scenario + ".*"} {
		found, err := filepath.Glob(filepath.Join(root, dir, filepath.FromSlash(pattern)))
		if err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}
