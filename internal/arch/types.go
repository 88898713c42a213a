package arch

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"path"
)

// typesOf checks the types of the package in dir as far as they can be known:
// ours from the tree, the standard library's from the compiler's export data.
// What others define stays unknown.
func (t *Tree) typesOf(dir string) *types.Info {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{},
	}
	l := &loader{tree: t, std: importer.ForCompiler(t.Fset, "gc", nil), done: map[string]*types.Package{}}
	l.check(dir, info)
	return info
}

// loader is a types.Importer over a tree.
type loader struct {
	tree *Tree
	std  types.Importer
	done map[string]*types.Package
}

// Import resolves an import path.
func (l *loader) Import(imp string) (*types.Package, error) {
	dir, ours := localImport(imp)
	switch {
	case imp == "unsafe":
		return types.Unsafe, nil
	case ours:
		return l.check(dir, nil), nil
	case isStd(imp):
		return l.std.Import(imp)
	}
	return nil, fmt.Errorf("%s is not ours", imp)
}

// check type-checks the non-test files of a folder and continues after errors.
func (l *loader) check(dir string, info *types.Info) *types.Package {
	if p := l.done[dir]; p != nil {
		return p
	}
	var files []*ast.File
	for _, f := range l.tree.Files {
		if f.Dir == dir && !f.Test {
			files = append(files, f.AST)
		}
	}
	conf := types.Config{Importer: l, Error: func(error) {}, DisableUnusedImportCheck: true}
	// The error is the first of those given to Error; the package is usable.
	p, _ := conf.Check(path.Join(Module, dir), l.tree.Fset, files, info)
	l.done[dir] = p
	return p
}
