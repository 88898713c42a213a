package docgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

// source calls each for every Go file of the project, by path from the root.
func source(t *testing.T, each func(path string, f *ast.File, at func(ast.Node) token.Position)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "peers" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		each(filepath.ToSlash(rel), f, func(n ast.Node) token.Position { return fset.Position(n.Pos()) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorTableIsComplete(t *testing.T) {
	table := map[string]bool{}
	for _, c := range engine.Codes() {
		if table[c.Code] || !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Remedy, ".") {
			t.Errorf("the row of %s is there twice, or is no whole sentence", c.Code)
		}
		table[c.Code] = true
	}
	declared, used := map[string]string{}, map[string]bool{}
	source(t, func(path string, f *ast.File, at func(ast.Node) token.Position) {
		switch {
		case strings.HasSuffix(path, "_test.go"), strings.HasPrefix(path, "llm/llmtest/"), strings.HasPrefix(path, "store/storetest/"):
		case path == "engine/codes.go":
			declared = stringConsts(f)
		default:
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				if code, ok := literalCode(n); ok && !table[code] {
					t.Errorf("%s: the code %q is not in the table of engine/codes.go", at(n), code)
				}
				return true
			})
		}
	})
	if len(declared) != len(table) {
		t.Errorf("%d codes are declared and %d are in the table", len(declared), len(table))
	}
	for name, code := range declared {
		if !table[code] || !used[name] {
			t.Errorf("%s (%s) has no row in the table, or is used nowhere", name, code)
		}
	}
}

// stringConsts returns the constants of a file that are texts, by name.
func stringConsts(f *ast.File) map[string]string {
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range v.Names {
			if i < len(v.Values) {
				if s, ok := text(v.Values[i]); ok {
					out[name.Name] = s
				}
			}
		}
		return false
	})
	return out
}

// literalCode returns the code of an Error or RecordedError that is written out.
func literalCode(n ast.Node) (string, bool) {
	c, ok := n.(*ast.CompositeLit)
	if !ok {
		return "", false
	}
	name := ""
	switch t := c.Type.(type) {
	case *ast.Ident:
		name = t.Name
	case *ast.SelectorExpr:
		name = t.Sel.Name
	}
	if name != "Error" && name != "RecordedError" {
		return "", false
	}
	for _, e := range c.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
			return text(kv.Value)
		}
	}
	return "", false
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
