package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// CheckImports reports imports between our packages that no rule allows, and
// packages without a rule. Test files are free to look up.
func CheckImports(t *Tree, rules []PackageRule) []Finding {
	var out []Finding
	known := map[string]bool{}
	for _, f := range t.Files {
		rule, ok := ruleOf(f.Dir, rules)
		if !ok {
			if !known[f.Dir] {
				out = append(out, t.findingAt(f.AST.Name, "folder %s has no import rule: add a Room with its reason", f.Dir))
			}
			known[f.Dir] = true
			continue
		}
		if f.Test {
			continue
		}
		for _, s := range f.AST.Imports {
			dir, ours := localImport(importPath(s))
			if ours && !withinAny(dir, rule.Allowed) {
				out = append(out, t.findingAt(s, "%s must not import %s: %s", f.Dir, dir, rule.Why))
			}
		}
	}
	return out
}

// ruleOf finds the rule for a folder: its own, or the longest pattern.
func ruleOf(dir string, rules []PackageRule) (PackageRule, bool) {
	best, found := PackageRule{}, false
	for _, r := range rules {
		switch {
		case r.Dir == dir:
			return r, true
		case within(dir, r.Dir) && len(r.Dir) > len(best.Dir):
			best, found = r, true
		}
	}
	return best, found
}

// CheckDependencies reports imports of a vendor outside its home, vendors that the
// root package reaches, and vendor types in what a home exports.
func CheckDependencies(t *Tree, vendors []DependencyRule) []Finding {
	linked := t.reachableFrom(".")
	var out []Finding
	for _, f := range t.Files {
		for _, s := range f.AST.Imports {
			v, ok := dependencyRuleOf(importPath(s), vendors)
			switch {
			case !ok:
			case !withinAny(f.Dir, v.Only):
				out = append(out, t.findingAt(s, "%s must not import %s: %s", f.Dir, importPath(s), v.Why))
			case v.Unlinked && !f.Test && linked[f.Dir]:
				out = append(out, t.findingAt(s, "the root package reaches %s through %s: %s", importPath(s), f.Dir, v.Why))
			case v.Hide && !f.Test:
				out = append(out, t.exposedTypes(f, s, v)...)
			}
		}
	}
	return out
}

func dependencyRuleOf(imp string, vendors []DependencyRule) (DependencyRule, bool) {
	i := slices.IndexFunc(vendors, func(v DependencyRule) bool { return strings.HasPrefix(imp, v.Prefix) })
	if i < 0 {
		return DependencyRule{}, false
	}
	return vendors[i], true
}

// reachableFrom returns the folders of ours that a folder imports, directly or not,
// with itself.
func (t *Tree) reachableFrom(from string) map[string]bool {
	imports := map[string][]string{}
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		for _, s := range f.AST.Imports {
			if dir, ours := localImport(importPath(s)); ours {
				imports[f.Dir] = append(imports[f.Dir], dir)
			}
		}
	}
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[dir] {
			seen[dir] = true
			todo = append(todo, imports[dir]...)
		}
	}
	return seen
}

// exposedTypes reports the uses of an import in the exported declarations of a file.
func (t *Tree) exposedTypes(f *File, s *ast.ImportSpec, v DependencyRule) []Finding {
	var out []Finding
	name := localName(s)
	look := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				out = append(out, t.findingAt(sel, "%s exports the vendor's %s.%s: %s", f.Dir, name, sel.Sel.Name, v.Why))
			}
			return true
		})
	}
	for _, d := range f.AST.Decls {
		exportedTypes(d, look)
	}
	return out
}

// exportedTypes calls look on each type that a declaration shows to importers.
func exportedTypes(d ast.Decl, look func(ast.Node)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && exportedReceiver(d) {
			look(d.Type)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			exportedSpec(s, look)
		}
	}
}

func exportedSpec(s ast.Spec, look func(ast.Node)) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		if s.Type != nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
			look(s.Type)
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		st, ok := s.Type.(*ast.StructType)
		if !ok {
			look(s.Type)
			return
		}
		for _, f := range st.Fields.List {
			if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				look(f.Type)
			}
		}
	}
}

// exportedReceiver is true for functions and for methods of exported types.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.IsExported() {
			exported = true
		}
		return true
	})
	return exported
}

// localName returns the name an import has in its file: its own, or the last
// element of its path without a version.
func localName(s *ast.ImportSpec) string {
	if s.Name != nil {
		return s.Name.Name
	}
	parts := strings.Split(importPath(s), "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	return strings.TrimSuffix(strings.TrimPrefix(last, "go-"), "-go")
}
