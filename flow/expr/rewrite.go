package expr

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// dottedQuestions writes a?.b as a.?b, CEL's form of optional selection, where a text is
// neither in a literal nor in a comment. The length does not change, so that positions stay.
func dottedQuestions(src string) string {
	if !strings.Contains(src, "?.") {
		return src
	}
	out := []byte(src)
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"' || c == '\'':
			raw := i > 0 && (src[i-1] == 'r' || src[i-1] == 'R') && !wordBefore(src, i-1, 0)
			i = afterLiteral(src, i, raw)
			continue
		case c == '/' && strings.HasPrefix(src[i:], "//"):
			n := strings.IndexByte(src[i:], '\n')
			if n < 0 {
				return string(out)
			}
			i += n
		case c == '?' && i > 0 && i+2 < len(src) && src[i+1] == '.' && endsOperand(src[i-1]) && startsMember(src[i+2]):
			out[i], out[i+1] = '.', '?'
			i++
		}
		i++
	}
	return string(out)
}

func endsOperand(c byte) bool { return nameByte(c) || c == ')' || c == ']' || c == '}' || c == '`' }

func startsMember(c byte) bool { return nameByte(c) && (c < '0' || c > '9') || c == '`' }

// rewrite changes a syntax tree, whose references are already known: negative and computed
// positions count from the end of a list, macros read the keys of an object in order, and or
// and orValue are steps of this package.
func rewrite(tree *ast.AST) {
	factory := ast.NewExprFactory()
	next := ast.MaxID(tree)
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			c := e.AsCall()
			switch n := c.FunctionName(); {
			case n == operators.Index && computed(c.Args()[1]):
				e.SetKindCase(factory.NewCall(e.ID(), fnAt, c.Args()...))
			case n == operators.OptIndex && computed(c.Args()[1]):
				e.SetKindCase(factory.NewCall(e.ID(), fnOptAt, c.Args()...))
			case (n == "or" || n == "orValue") && c.IsMemberFunction() && len(c.Args()) == 1:
				e.SetKindCase(factory.NewCall(e.ID(), "@"+n, c.Target(), c.Args()[0]))
			}
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			if k := c.IterRange().Kind(); k == ast.ListKind || k == ast.LiteralKind {
				return
			}
			next++
			over := factory.NewCall(next, fnOrdered, c.IterRange())
			e.SetKindCase(factory.NewComprehensionTwoVar(e.ID(), over, c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(),
				c.LoopCondition(), c.LoopStep(), c.Result()))
		default:
		}
	}))
}

// computed reports whether an index is anything but a member's name or a position from the
// start.
func computed(key ast.Expr) bool {
	if key.Kind() != ast.LiteralKind {
		return true
	}
	n, ok := key.AsLiteral().(types.Int)
	return ok && n < 0
}
