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

// identifier matches an identifier of a package in a code span, such as `weir.Options.Flows`.
var identifier = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?")

// TestDocIdentifiersExist checks each identifier of a package of this project that a page names. Decisions are left
// out: they name what existed at their time.
func TestDocIdentifiersExist(t *testing.T) {
	exported := exportedNames(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := filepath.Glob(filepath.Join(root, "docs", "nodes", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(append(pages, nodes...), filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range identifier.FindAllStringSubmatch(string(text), -1) {
			names, ours := exported[m[1]]
			if !ours {
				continue
			}
			found++
			if !names[m[2]] || m[3] != "" && !names[m[2]+"."+m[3]] && !names[m[2]+".*"] {
				t.Errorf("%s: %s does not exist", filepath.Base(page), m[0][1:])
			}
		}
	}
	if found < 40 {
		t.Errorf("the pages have %d identifiers; does the pattern still match?", found)
	}
}

// exportedNames lists the exported names of the packages of the project by the package's name, and as "Type.Name" the
// exported fields and methods of types; "Type.*" is an alias of a type in another package. Packages of the same name share a list.
func exportedNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	source(t, func(file string, f *ast.File, _ func(ast.Node) token.Position) {
		if strings.HasSuffix(file, "_test.go") || f.Name.Name == "main" || path.Dir(file) == "bench" {
			return
		}
		names := all[f.Name.Name]
		if names == nil {
			names = map[string]bool{}
			all[f.Name.Name] = names
		}
		for _, d := range f.Decls {
			addNames(names, d)
		}
	})
	return all
}

func addNames(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				addMembers(names, s)
				if s.Assign.IsValid() { // the members are those of the other type
					names[s.Name.Name+".*"] = true
				}
			}
		}
	}
}

func addMembers(names map[string]bool, s *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			names[s.Name.Name+"."+n.Name] = true
		}
	}
}

// receiver returns the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
