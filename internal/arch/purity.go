package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// CheckPurity reports what a pure package uses and must not use. Test files may do
// what they like.
func CheckPurity(t *Tree, rules []PurityRule) []Finding {
	var out []Finding
	for _, p := range rules {
		var info *types.Info
		if p.Ordered {
			info = t.typesOf(p.Dir)
		}
		for _, f := range t.Files {
			if f.Dir != p.Dir || f.Test {
				continue
			}
			out = append(out, t.impureImports(f, p)...)
			out = append(out, t.impureCode(f, p)...)
			if p.Ordered {
				out = append(out, t.unorderedRanges(f, p, info)...)
			}
		}
	}
	return out
}

func (t *Tree) impureImports(f *File, p PurityRule) []Finding {
	if p.Std == nil {
		return nil
	}
	var out []Finding
	for _, s := range f.AST.Imports {
		imp := importPath(s)
		if isStd(imp) && !withinAny(imp, p.Std) {
			out = append(out, t.findingAt(s, "%s must not import %s: %s", p.Dir, imp, p.Why))
		}
		if s.Name != nil && s.Name.Name == "." {
			out = append(out, t.findingAt(s, "%s must not import %s into its own names: calls could not be checked", p.Dir, imp))
		}
	}
	return out
}

// impureCode reports forbidden functions, and what is not sequential.
func (t *Tree) impureCode(f *File, p PurityRule) []Finding {
	var out []Finding
	names := map[string]string{}
	for _, s := range f.AST.Imports {
		names[localName(s)] = importPath(s)
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if call := qualified(sel, names); call != "" && forbidden(call, p.Calls) {
				out = append(out, t.findingAt(n, "%s must not use %s: %s", p.Dir, call, p.Why))
			}
		}
		if what := concurrency(n); what != "" && p.Sequential {
			out = append(out, t.findingAt(n, "%s must not use %s: %s", p.Dir, what, p.Why))
		}
		return true
	})
	return out
}

// qualified is "path.Name" of a selector on an imported package, "" for others.
func qualified(sel *ast.SelectorExpr, names map[string]string) string {
	x, ok := sel.X.(*ast.Ident)
	if !ok || names[x.Name] == "" {
		return ""
	}
	return names[x.Name] + "." + sel.Sel.Name
}

func forbidden(call string, calls []string) bool {
	for _, c := range calls {
		prefix, open := strings.CutSuffix(c, "*")
		if call == c || open && strings.HasPrefix(call, prefix) {
			return true
		}
	}
	return false
}

// concurrency names what a syntax node has to do with it, "" for nothing; the
// print builtins stand here because no import betrays them.
func concurrency(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt:
		return "select"
	case *ast.ChanType:
		return "a channel"
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			return id.Name
		}
	}
	return ""
}

// unorderedRanges reports loops over maps, or over what could be one, that no
// comment vouches for.
func (t *Tree) unorderedRanges(f *File, p PurityRule, info *types.Info) []Finding {
	var out []Finding
	vouched := t.orderCommentLines(f)
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if d, ok := n.(*ast.FuncDecl); ok && hasOrderComment(d.Doc) {
			return false
		}
		r, ok := n.(*ast.RangeStmt)
		if !ok || !mapOrUnknown(r.X, info) {
			return true
		}
		if line := t.Fset.Position(r.Pos()).Line; !vouched[line] && !vouched[line-1] {
			out = append(out, t.findingAt(r, "%s ranges over a map: sort the keys, or say above the loop why their order "+
				"does not matter (// order: ...): %s", p.Dir, p.Why))
		}
		return true
	})
	return out
}

// mapOrUnknown is true for maps, for the iterators of package maps and for
// what has no known type.
func mapOrUnknown(x ast.Expr, info *types.Info) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "maps" {
				return true
			}
		}
	}
	typ := info.TypeOf(x)
	if typ == nil || typ == types.Typ[types.Invalid] {
		return true
	}
	_, isMap := typ.Underlying().(*types.Map)
	return isMap
}

// orderCommentLines lists the lines on which an order comment ends.
func (t *Tree) orderCommentLines(f *File) map[int]bool {
	lines := map[int]bool{}
	for _, g := range f.AST.Comments {
		if hasOrderComment(g) {
			lines[t.Fset.Position(g.End()-token.Pos(1)).Line] = true
		}
	}
	return lines
}

// hasOrderComment looks for a line "order: why" with a reason in it.
func hasOrderComment(g *ast.CommentGroup) bool {
	if g == nil {
		return false
	}
	for line := range strings.SplitSeq(g.Text(), "\n") {
		if why, ok := strings.CutPrefix(line, "order:"); ok && strings.TrimSpace(why) != "" {
			return true
		}
	}
	return false
}
