// Package arch contains the rules of this repository as data, and checks a tree of Go
// files against them: which package may import which, what keeps the core pure, the
// sizes of files and functions, and the names and comments of packages. Its test
// applies the rules to this repository.
//
// It must not know what the code does: it reads syntax, and types only for rules about
// maps. It imports no package of Weir, and no package imports it.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the tree's root.
const Module = "github.com/weir-run/weir"

// Tree is the parsed Go files of one module.
type Tree struct {
	Fset  *token.FileSet
	Files []*File // by path
}

// File is one parsed Go file.
type File struct {
	// Path is slash-separated, from the root: "engine/event.go".
	Path string
	// Dir is the package's folder, "." for the root.
	Dir string
	AST *ast.File
	// Lines is how many lines the file has.
	Lines int
	// Test marks _test.go files; Generated those with the standard header.
	Test, Generated bool
}

// Finding is one broken rule.
type Finding struct {
	Pos token.Position
	// Message says what is wrong, what to do and why the rule stands.
	Message string
}

// String is "file:line: message".
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s", f.Pos.Filename, f.Pos.Line, f.Message)
}

// Load parses every Go file below the root of fsys, but not those of nested
// modules, testdata, or folders whose name begins with a dot or underscore. A
// file that does not parse is an error.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return checkDir(fsys, p)
		case path.Ext(p) != ".go":
			return nil
		}
		return t.add(fsys, p)
	})
	if err != nil {
		return nil, fmt.Errorf("load the tree: %w", err)
	}
	return t, nil
}

// checkDir returns fs.SkipDir for folders that are not part of the module.
func checkDir(fsys fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	name := path.Base(dir)
	if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "node_modules" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *Tree) add(fsys fs.FS, p string) error {
	src, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	a, err := parser.ParseFile(t.Fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{
		Path: p, Dir: path.Dir(p), AST: a,
		Lines:     strings.Count(string(src), "\n"),
		Test:      strings.HasSuffix(p, "_test.go"),
		Generated: ast.IsGenerated(a),
	})
	return nil
}

// findingAt makes a finding at a node of a file.
func (t *Tree) findingAt(n ast.Node, format string, args ...any) Finding {
	return Finding{Pos: t.Fset.Position(n.Pos()), Message: fmt.Sprintf(format, args...)}
}

// dirs lists the folders that hold Go files, in order.
func (t *Tree) dirs() []string {
	var out []string
	for _, f := range t.Files {
		out = append(out, f.Dir)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// importPath returns the path a file imports; the parser has checked its form.
func importPath(s *ast.ImportSpec) string {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return s.Path.Value
	}
	return p
}

// localImport returns the folder of one of our packages, and false for any other.
func localImport(imp string) (string, bool) {
	if imp == Module {
		return ".", true
	}
	return strings.CutPrefix(imp, Module+"/")
}

// isStd reports whether an import path is of the standard library: those have
// no dot in their first element.
func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

// within reports whether dir matches a pattern: itself, or "store/..." for
// everything below store and "..." for everything.
func within(dir, pattern string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(dir, base+"/")
	}
	return dir == pattern
}

func withinAny(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(dir, p) })
}
