package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// CheckSizes reports files and functions past the ceilings. Generated files
// are not measured.
func CheckSizes(t *Tree, maxFile, maxFunc int) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if f.Generated {
			continue
		}
		if f.Lines > maxFile {
			out = append(out, t.findingAt(f.AST, "%d lines, at most %d: split the file by idea", f.Lines, maxFile))
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := t.Fset.Position(fn.End()).Line - t.Fset.Position(fn.Pos()).Line + 1; n > maxFunc {
				out = append(out, t.findingAt(fn, "func %s has %d lines, at most %d: split it", fn.Name.Name, n, maxFunc))
			}
		}
	}
	return out
}

// CheckNames reports packages and folders whose name says nothing.
func CheckNames(t *Tree, bad []string) []Finding {
	var out []Finding
	for _, f := range t.Files {
		for _, name := range []string{f.AST.Name.Name, path.Base(f.Dir)} {
			if slices.Contains(bad, name) {
				out = append(out, t.findingAt(f.AST.Name, "a package called %s says nothing of what is inside: "+
					"name it for its idea", name))
				break
			}
		}
	}
	return out
}

// CheckComments reports packages without a comment that says what the package
// is and, for those that can be imported, what it must not know.
func CheckComments(t *Tree) []Finding {
	var out []Finding
	for _, dir := range t.dirs() {
		var first *File
		var doc strings.Builder
		for _, f := range t.Files {
			if f.Dir != dir || f.Test {
				continue
			}
			if first == nil {
				first = f
			}
			if f.AST.Doc != nil {
				doc.WriteString(f.AST.Doc.Text())
			}
		}
		if first != nil {
			out = append(out, t.comment(first, doc.String())...)
		}
	}
	return out
}

func (t *Tree) comment(f *File, doc string) []Finding {
	name := f.AST.Name.Name
	if name == "main" {
		if doc == "" {
			return []Finding{t.findingAt(f.AST.Name, "command %s has no comment: say what it is for", f.Dir)}
		}
		return nil
	}
	switch flat := strings.Join(strings.Fields(doc), " "); {
	case !strings.HasPrefix(doc, "Package "+name+" "):
		return []Finding{t.findingAt(f.AST.Name, "package %s has no comment that begins \"Package %s\"", name, name)}
	case !strings.Contains(flat, "must not"):
		return []Finding{t.findingAt(f.AST.Name, "the comment of package %s does not say what it must not know", name)}
	}
	return nil
}
