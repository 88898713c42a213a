package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

func isLiteral(s string) bool {
	return s == "true" || s == "false" || s == "null" || s == "in"
}

// Reserved reports whether CEL reserves a name, so that no root can have it.
func Reserved(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
		"let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while":
		return true
	}
	return false
}

// refCollector collects the references of a syntax tree.
type refCollector struct {
	env   *cel.Env
	src   string
	tree  *ast.AST
	refs  []Ref
	bound map[string]int // variables of the surrounding comprehensions, counted
	err   *SyntaxError
	// conditionalDepth counts the surrounding constructs that may leave their parts
	// unevaluated.
	conditionalDepth int
	// nodes maps each syntax node of a reference to its index in refs; nil if not needed.
	nodes map[int64]int
	// byte offset of each code point; nil if the source is ASCII.
	starts []int
}

// references lists the references of a parsed expression and refuses what the language does
// not support: unknown functions and messages.
func references(env *cel.Env, src string, tree *ast.AST) ([]Ref, error) {
	w := newRefCollector(env, src, tree)
	w.walk(tree.Expr())
	if w.err != nil {
		return nil, w.err
	}
	slices.SortStableFunc(w.refs, func(a, b Ref) int { return cmp.Compare(a.Offset, b.Offset) })
	return w.refs, nil
}

func newRefCollector(env *cel.Env, src string, tree *ast.AST) *refCollector {
	w := &refCollector{env: env, src: src, tree: tree, bound: map[string]int{}}
	if runes := len([]rune(src)); runes != len(src) {
		w.starts = make([]int, 0, runes)
		for i := range src {
			w.starts = append(w.starts, i)
		}
	}
	return w
}

func (w *refCollector) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		w.path(e)
	case ast.CallKind:
		w.call(e)
	case ast.ListKind:
		w.all(e.AsList().Elements())
	case ast.MapKind:
		for _, m := range e.AsMap().Entries() {
			w.walk(m.AsMapEntry().Key())
			w.walk(m.AsMapEntry().Value())
		}
	case ast.StructKind:
		w.fail(e, fmt.Sprintf("message types such as %q are not supported", e.AsStruct().TypeName()))
	case ast.ComprehensionKind:
		w.comprehension(e.AsComprehension())
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
}

func (w *refCollector) all(es []ast.Expr) {
	for _, e := range es {
		w.walk(e)
	}
}

func (w *refCollector) comprehension(c ast.ComprehensionExpr) {
	w.walk(c.IterRange())
	w.walk(c.AccuInit())
	names := []string{c.AccuVar(), c.IterVar()}
	if c.HasIterVar2() {
		names = append(names, c.IterVar2())
	}
	for _, n := range names {
		w.bound[n]++
	}
	w.conditionalDepth++
	w.walk(c.LoopCondition())
	w.walk(c.LoopStep())
	w.walk(c.Result())
	w.conditionalDepth--
	for _, n := range names {
		w.bound[n]--
	}
}

func (w *refCollector) call(e ast.Expr) {
	c := e.AsCall()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		w.path(e)
		return
	}
	if !c.IsMemberFunction() {
		if name := strings.TrimPrefix(c.FunctionName(), "."); !w.env.HasFunction(name) || onlyMethod(w.env, name) {
			w.fail(e, unknownFunction(name, name))
		}
		w.args(c)
		return
	}
	if t := c.Target(); t.Kind() == ast.IdentKind && w.env.HasFunction(t.AsIdent()+"."+c.FunctionName()) {
		w.all(c.Args())
		return
	}
	if !w.env.HasFunction(c.FunctionName()) {
		w.fail(e, unknownFunction(c.FunctionName(), qualified(c)))
	}
	w.walk(c.Target())
	if n := c.FunctionName(); n == "or" || n == "orValue" {
		w.conditionalDepth++
		defer func() { w.conditionalDepth-- }()
	}
	w.all(c.Args())
}

// qualified returns the name of a call with the name before it, which may be a namespace.
func qualified(c ast.CallExpr) string {
	if t := c.Target(); t.Kind() == ast.IdentKind {
		return t.AsIdent() + "." + c.FunctionName()
	}
	return c.FunctionName()
}

// onlyMethod reports whether a function exists only as a method.
func onlyMethod(env *cel.Env, name string) bool {
	f := env.Functions()[name]
	if f == nil || len(f.OverloadDecls()) == 0 {
		return false
	}
	for _, o := range f.OverloadDecls() {
		if !o.IsMemberFunction() {
			return false
		}
	}
	return true
}

// unknownFunction says that there is no such function, or how it is called.
func unknownFunction(name, qualified string) string {
	for _, n := range []string{qualified, name} {
		if usage := usageOf(n); usage != "" {
			return fmt.Sprintf("%s is called as %s", n, usage)
		}
	}
	msg := fmt.Sprintf("the function %q does not exist", name)
	if here := foreignHint(name, qualified); here != "" {
		return msg + "; write " + here
	}
	if near := nearest(name, qualified); near != "" {
		msg += "; did you mean " + near + "?"
	}
	return msg
}

// nearest returns the function whose name differs only in the case of its letters, in its
// namespace or in one letter; "" if there is none.
func nearest(name, qualified string) string {
	short := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	for _, f := range Functions() {
		if strings.EqualFold(f.Name, qualified) || len(qualified) > 3 && oneLetterApart(f.Name, qualified) {
			return f.Name
		}
	}
	for _, f := range Functions() {
		if strings.EqualFold(short(f.Name), name) || len(name) > 3 && oneLetterApart(short(f.Name), name) {
			return f.Name
		}
	}
	return ""
}

// oneLetterApart reports whether one letter is missing, extra or different.
func oneLetterApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && a[i+1:] == b[i+1:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

// args walks the arguments of a function or operator and marks those that may not be
// evaluated. Either side of || and && may decide alone.
func (w *refCollector) args(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Conditional:
		w.walk(args[0])
		args = args[1:]
	case operators.LogicalOr, operators.LogicalAnd:
	default:
		w.all(args)
		return
	}
	w.conditionalDepth++
	w.all(args)
	w.conditionalDepth--
}

// path reads a chain of selections down to its root. A member that is not constant ends the
// path and is walked separately.
func (w *refCollector) path(e ast.Expr) {
	var names []string
	var ids []int64
	test := false
	for cur := e; ; {
		ids = append(ids, cur.ID())
		switch cur.Kind() {
		case ast.SelectKind:
			s := cur.AsSelect()
			test = test || (s.IsTestOnly() && len(names) == 0)
			names = append(names, s.FieldName())
			cur = s.Operand()
			continue
		case ast.CallKind:
			c := cur.AsCall()
			if isIndex(c) {
				if c.FunctionName() != operators.Index { // what follows may be absent too
					names, test = nil, true
				}
				if key, ok := constantKey(c.Args()[1]); ok {
					names = append(names, key)
				} else {
					w.walk(c.Args()[1])
					names, test = nil, false
				}
				cur = c.Args()[0]
				continue
			}
		case ast.IdentKind:
			w.add(cur, names, test, ids)
			return
		default:
		}
		w.walk(cur)
		return
	}
}

// isIndex reports whether a call selects an element or an optional member.
func isIndex(c ast.CallExpr) bool {
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return len(c.Args()) == 2
	}
	return false
}

func constantKey(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// add records a reference; the names are in reverse order.
func (w *refCollector) add(root ast.Expr, names []string, test bool, ids []int64) {
	name := strings.TrimPrefix(root.AsIdent(), ".")
	if w.bound[name] > 0 || name == UUIDSeed {
		return
	}
	slices.Reverse(names)
	off := w.offset(root)
	end := w.end(off, name, names)
	if w.nodes != nil {
		for _, id := range ids {
			w.nodes[id] = len(w.refs)
		}
	}
	w.refs = append(w.refs, Ref{Root: name, Path: names, Offset: off, Len: end - off, IsHas: test, Conditional: test || w.conditionalDepth > 0})
}

// end returns the end of a reference in the source, as far as it is written with dots
// and quoted names. It is used only for messages.
func (w *refCollector) end(off int, root string, names []string) int {
	at := off + len(root)
	if !strings.HasPrefix(w.src[min(off, len(w.src)):], root) {
		return min(at, len(w.src))
	}
	for _, n := range names {
		rest := w.src[at:]
		if strings.HasPrefix(rest, "?.") || strings.HasPrefix(rest, ".?") {
			rest = rest[1:]
			rest = "." + rest[1:]
		}
		name, next, ok := cutMember(rest)
		if !ok || name != n {
			break
		}
		at = len(w.src) - len(next)
	}
	return at
}

// offset returns the position of an expression in bytes.
func (w *refCollector) offset(e ast.Expr) int { return w.offsetOf(e.ID()) }

// offsetOf returns the position of the syntax node with that id.
func (w *refCollector) offsetOf(id int64) int {
	r, ok := w.tree.SourceInfo().GetOffsetRange(id)
	switch {
	case !ok || r.Start < 0:
		return 0
	case w.starts == nil:
		return min(int(r.Start), len(w.src))
	case int(r.Start) >= len(w.starts):
		return len(w.src)
	}
	return w.starts[r.Start]
}

func (w *refCollector) fail(e ast.Expr, msg string) {
	if w.err == nil {
		w.err = &SyntaxError{w.offset(e), msg}
	}
}
