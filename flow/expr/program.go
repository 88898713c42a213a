package expr

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/weir-run/weir/internal/lru"
)

// Program is a compiled expression. It is immutable and safe for concurrent use. Compiling
// costs a hundred times as much as evaluating, so compile once.
type Program struct {
	src  string
	refs []Ref
	// path is set if the expression is a plain reference such as a.b["c d"], which is resolved
	// without CEL; prog otherwise.
	path []string
	prog cel.Program
	// compileOnce guards the compilation of a program from Defer; failed is its error.
	compileOnce sync.Once
	deferred    bool // the program is compiled on first use
	failed      error
}

// Compile compiles a bare CEL expression. It returns a *SyntaxError for bad syntax, an
// unknown function, or an exceeded limit.
func Compile(src string) (*Program, error) {
	if len(src) > MaxSource {
		return nil, &SyntaxError{MaxSource, fmt.Sprintf("the expression is longer than %d bytes", MaxSource)}
	}
	if !utf8.ValidString(src) {
		return nil, &SyntaxError{0, "the expression is not valid UTF-8"}
	}
	if r, ok := plainPath(src); ok {
		return &Program{src: src, refs: []Ref{r}, path: append([]string{r.Root}, r.Path...)}, nil
	}
	if strings.TrimSpace(src) == "" {
		return nil, &SyntaxError{0, "the expression is empty"}
	}
	if p := compiled.get(src); p != nil {
		return p, nil
	}
	p := &Program{src: src}
	if err := p.compile(); err != nil {
		return nil, err
	}
	compiled.put(p)
	return p, nil
}

// programCache has the programs that were compiled last. An expression is compiled when its
// flow is checked and again for the node that evaluates it, and a flow may be read for
// each run.
type programCache struct {
	mu       sync.Mutex
	programs lru.Map[string, *Program]
}

// maxCompiled and maxCachedSource limit the cache: a program takes 5 kB of memory for a source of
// 20 bytes, and 13 kB for one of 120.
const (
	maxCompiled     = 512
	maxCachedSource = 300 // bytes
)

var compiled = programCache{programs: lru.Map[string, *Program]{Max: maxCompiled}} //nolint:gochecknoglobals // a cache of immutable values

func (c *programCache) get(src string) *Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := c.programs.Get(src)
	return p
}

func (c *programCache) put(p *Program) {
	if len(p.src) > maxCachedSource {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs.Put(p.src, p)
}

// Defer is Compile for an expression that is known to be valid, such as one of a validated
// flow: compilation is deferred to the first use. If the expression is invalid after all,
// evaluating it returns the error of Compile.
func Defer(src string) *Program {
	if r, ok := plainPath(src); ok && len(src) <= MaxSource {
		return &Program{src: src, refs: []Ref{r}, path: append([]string{r.Root}, r.Path...)}
	}
	return &Program{src: src, deferred: true}
}

// ensureCompiled compiles a deferred program.
func (p *Program) ensureCompiled() error {
	if p.deferred {
		p.compileOnce.Do(func() {
			done, err := Compile(p.src)
			if err != nil {
				p.failed = err
				return
			}
			p.refs, p.prog = done.refs, done.prog
		})
	}
	return p.failed
}

// compile creates the executable program.
func (p *Program) compile() error {
	src := p.src
	env, err := environment()
	if err != nil {
		return fmt.Errorf("build the CEL environment: %w", err)
	}
	ast, iss := parse(env, src)
	if err := iss.Err(); err != nil {
		return syntaxError(src, iss.Errors())
	}
	if p.refs, err = references(env, src, ast.NativeRep()); err != nil {
		return err
	}
	rewrite(ast.NativeRep())
	p.prog, err = env.Program(ast, cel.CostTracking(callCosts{}), cel.CostLimit(MaxCost), cel.CustomDecoratorV2(newDecorator(ast.NativeRep().Expr())))
	if err != nil {
		return &SyntaxError{0, err.Error()}
	}
	return nil
}

// parse parses an expression, with optional members written as a?.b or a.?b.
func parse(env *cel.Env, src string) (*cel.Ast, *cel.Issues) {
	dotted := dottedQuestions(src)
	tree, iss := env.Parse(dotted)
	if iss.Err() == nil || dotted == src {
		return tree, iss
	}
	if as, other := env.Parse(src); other.Err() == nil { // c?.x:y is ?: with an absolute name
		return as, other
	}
	return tree, iss
}

// syntaxError converts the first error of the parser, with its position in bytes.
func syntaxError(src string, errs []*common.Error) *SyntaxError {
	if len(errs) == 0 {
		return &SyntaxError{0, "invalid expression"}
	}
	e := errs[0]
	msg := strings.TrimPrefix(e.Message, "Syntax error: ")
	if i := strings.Index(msg, " expecting {"); i >= 0 {
		msg = msg[:i]
	}
	for _, lead := range []string{"mismatched input ", "extraneous input ", "no viable alternative at input ", "token recognition error at: "} {
		if rest, ok := strings.CutPrefix(msg, lead); ok {
			msg = "unexpected " + rest
		}
	}
	msg = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(msg, " expecting <EOF>", ""), "'<EOF>'", "end"), "'= '", "'='")
	if hint := syntaxHint(src); hint != "" {
		msg += "; " + hint
	}
	if e.Location == nil || e.Location.Line() < 1 {
		return &SyntaxError{0, msg}
	}
	rest, off := src, 0
	for range e.Location.Line() - 1 {
		i := strings.IndexByte(rest, '\n') + 1
		rest, off = rest[i:], off+i
	}
	return &SyntaxError{off + runeOffset(rest, e.Location.Column()), msg}
}

// runeOffset returns the byte offset of the n-th code point of s.
func runeOffset(s string, n int) int {
	for i := range s {
		if n--; n < 0 {
			return i
		}
	}
	return len(s)
}

// Source returns the source text.
func (p *Program) Source() string { return p.src }

// Refs lists every reference to a root name, in source order; none for an invalid deferred
// program.
func (p *Program) Refs() []Ref {
	_ = p.ensureCompiled() // evaluation reports the error
	return p.refs
}

// Path returns the reference that the whole expression consists of, such as a, b, c for
// a.b.c; nil if it is more than a reference.
func (p *Program) Path() []string { return p.path }

// Eval evaluates the expression with the given names. The result is nil, bool, int64,
// float64, string, []any or map[string]any; other Go values from v are returned unchanged
// if the expression is a reference to them. An *EvalError names the reference that did not
// resolve, or the exceeded limit. Results may share memory with values of v and must not be
// changed.
func (p *Program) Eval(v Vars) (any, error) {
	if p.path != nil {
		return p.resolvePath(v)
	}
	if err := p.ensureCompiled(); err != nil {
		return nil, p.fail(0, err.Error())
	}
	out, _, err := p.prog.Eval(&activation{v})
	if err != nil {
		return nil, p.explain(v, err)
	}
	if o, ok := out.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, &EvalError{Source: strings.TrimSpace(p.src), Message: errNoValue.Error(), Absent: true}
		}
		out = o.GetValue()
	}
	n := nativeConverter{left: MaxResult / 2}
	res, err := n.of(out)
	if err != nil {
		return nil, p.fail(0, err.Error())
	}
	return res, nil
}

// activation exposes Vars to CEL.
type activation struct{ vars Vars }

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) { return a.vars.Lookup(name) }

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// resolvePath resolves a plain reference.
func (p *Program) resolvePath(v Vars) (any, error) {
	cur, ok := v.Lookup(p.path[0])
	if !ok {
		return nil, p.missing(p.refs[0], 0, unknownName(p.path[0]))
	}
	for i, name := range p.path[1:] {
		next, err := member(cur, name)
		if err != "" {
			return nil, p.missing(p.refs[0], i+1, Join(p.path[0], p.path[1:i+1]...)+err)
		}
		cur = next
	}
	if f, ok := cur.(float64); ok && f-f != 0 {
		return nil, p.fail(0, fmt.Sprintf("the result %v is not a number that can be stored", f))
	}
	return plain(cur), nil
}

func unknownName(name string) string { return fmt.Sprintf("there is no %q here", name) }

// member reads one member; the second result is the reason of a failure.
func member(v any, name string) (any, string) {
	switch t := v.(type) {
	case map[string]any:
		if m, ok := t[name]; ok {
			return m, ""
		}
		return nil, fmt.Sprintf(" has no member %q", name)
	case Object:
		if m, ok := t.Get(name); ok {
			return m, ""
		}
		return nil, fmt.Sprintf(" has no member %q", name)
	case map[string]string:
		if m, ok := t[name]; ok {
			return m, ""
		}
		return nil, fmt.Sprintf(" has no member %q", name)
	}
	return nil, fmt.Sprintf(" is %s and has no member %q", kindOf(v), name)
}

// kindOf returns the kind of a value for messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case string:
		return "a text"
	case int64, float64, int:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}

func (p *Program) fail(offset int, msg string) error {
	return &EvalError{Source: strings.TrimSpace(p.src), Offset: offset, Message: msg}
}

// missing returns the error of a reference whose member number n, counting the root as 0,
// does not exist.
func (p *Program) missing(r Ref, n int, msg string) error {
	r.Path = r.Path[:n:n]
	return &EvalError{Source: strings.TrimSpace(p.src), Offset: r.Offset, Message: msg, Missing: &r}
}
