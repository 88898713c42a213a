package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Template is a value with {{ }} in it: a string, or a list or map that contains such
// strings at any depth. It is immutable and safe for concurrent use.
type Template struct {
	// lit is the value if it has no {{ }}; isLit says so.
	lit   any
	isLit bool
	// one is set for a string that is exactly one {{ }}; parts for any other string.
	one   *Program
	at    int // offset of one's source in its string
	parts []part
	// items and members are set for a list and a map.
	items   []*Template
	members []memberTemplate
	kind    templateKind
}

type templateKind uint8

const (
	kindString templateKind = iota
	kindList
	kindMap
)

// part is literal text or an expression.
type part struct {
	text string
	prog *Program
	at   int
}

type memberTemplate struct {
	name string
	t    *Template
}

// maxDepth is the maximum nesting of a template's value.
const maxDepth = 128

// ParseTemplate parses a value. Strings, also inside []any and map[string]any, may contain
// {{ }}; map keys and everything else are literal. A *SyntaxError has its offset from the
// start of the string that contains it.
func ParseTemplate(v any) (*Template, error) { return parseTemplate(v, 0) }

func parseTemplate(v any, depth int) (*Template, error) {
	if depth > maxDepth {
		return nil, &SyntaxError{0, fmt.Sprintf("the value nests deeper than %d", maxDepth)}
	}
	switch t := v.(type) {
	case string:
		return parseString(t)
	case []any:
		return parseList(t, depth)
	case map[string]any:
		return parseMap(t, depth)
	}
	return &Template{lit: v, isLit: true}, nil
}

func parseList(l []any, depth int) (*Template, error) {
	t := &Template{kind: kindList, lit: l, isLit: true}
	for _, e := range l {
		c, err := parseTemplate(e, depth+1)
		if err != nil {
			return nil, err
		}
		t.isLit = t.isLit && c.isLit
		t.items = append(t.items, c)
	}
	return t, nil
}

func parseMap(m map[string]any, depth int) (*Template, error) {
	t := &Template{kind: kindMap, lit: m, isLit: true}
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		c, err := parseTemplate(m[k], depth+1)
		if err != nil {
			return nil, err
		}
		t.isLit = t.isLit && c.isLit
		t.members = append(t.members, memberTemplate{k, c})
	}
	return t, nil
}

func parseString(s string) (*Template, error) {
	t := &Template{lit: s}
	rest := 0
	for {
		i := strings.Index(s[rest:], "{{")
		if i < 0 {
			break
		}
		open := rest + i
		end := closing(s, open+2)
		if end < 0 {
			return nil, &SyntaxError{open, `"{{" has no "}}" (a literal "{{" is written {{ '{{' }})`}
		}
		p, err := Compile(s[open+2 : end])
		if err != nil {
			if syn, ok := errors.AsType[*SyntaxError](err); ok {
				return nil, &SyntaxError{open + 2 + syn.Offset, syn.Message}
			}
			return nil, err
		}
		if open > rest {
			t.parts = append(t.parts, part{text: s[rest:open]})
		}
		t.parts = append(t.parts, part{prog: p, at: open + 2})
		rest = end + 2
	}
	if rest < len(s) {
		t.parts = append(t.parts, part{text: s[rest:]})
	}
	switch {
	case len(t.parts) == 0 || (len(t.parts) == 1 && t.parts[0].prog == nil):
		t.isLit, t.parts = true, nil
	case len(t.parts) == 1:
		t.one, t.at, t.parts = t.parts[0].prog, t.parts[0].at, nil
	}
	return t, nil
}

// Literal returns the value and true if it has no {{ }}.
func (t *Template) Literal() (any, bool) {
	if !t.isLit {
		return nil, false
	}
	return t.lit, true
}

// Program returns the expression of a template that is exactly one {{ }}, nil for any
// other.
func (t *Template) Program() *Program { return t.one }

// Refs lists the references of all expressions, in order. Offsets count from the start of
// the string that contains the reference.
func (t *Template) Refs() []Ref {
	switch {
	case t.isLit:
		return nil
	case t.one != nil:
		return shifted(nil, t.one, t.at)
	}
	var refs []Ref
	for _, p := range t.parts {
		if p.prog != nil {
			refs = shifted(refs, p.prog, p.at)
		}
	}
	for _, c := range t.items {
		refs = append(refs, c.Refs()...)
	}
	for _, m := range t.members {
		refs = append(refs, m.t.Refs()...)
	}
	return refs
}

func shifted(to []Ref, p *Program, by int) []Ref {
	for _, r := range p.refs {
		r.Offset += by
		to = append(to, r)
	}
	return to
}

// Eval returns the value with every expression evaluated: a string that is exactly one {{
// }} keeps the expression's type, other strings are rendered. Errors are those of
// Program.Eval, with their place in a list or map.
func (t *Template) Eval(v Vars) (any, error) {
	switch {
	case t.isLit:
		return t.lit, nil
	case t.one != nil:
		out, err := t.one.Eval(v)
		return out, moved(err, t.at)
	case t.kind == kindList:
		return t.evalList(v)
	case t.kind == kindMap:
		return t.evalMap(v)
	}
	return t.render(v)
}

func (t *Template) evalList(v Vars) (any, error) {
	out := make([]any, len(t.items))
	for i, c := range t.items {
		e, err := c.Eval(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out[i] = e
	}
	return out, nil
}

func (t *Template) evalMap(v Vars) (any, error) {
	out := make(map[string]any, len(t.members))
	for _, m := range t.members {
		e, err := m.t.Eval(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		out[m.name] = e
	}
	return out, nil
}

func (t *Template) render(v Vars) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.prog == nil {
			b.WriteString(p.text)
			continue
		}
		val, err := p.prog.Eval(v)
		if err != nil {
			return "", moved(err, p.at)
		}
		if err := appendText(&b, val); err != nil {
			return "", &EvalError{Source: strings.TrimSpace(p.prog.src), Offset: p.at, Message: err.Error()}
		}
		if b.Len() > MaxResult {
			return "", &EvalError{Source: strings.TrimSpace(p.prog.src), Offset: p.at, Message: errTooBig.Error()}
		}
	}
	return b.String(), nil
}

// Text evaluates the value and renders it as text: a string unchanged, everything else as
// JSON.
func (t *Template) Text(v Vars) (string, error) {
	val, err := t.Eval(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := appendText(&b, val); err != nil {
		return "", err
	}
	return b.String(), nil
}

// moved shifts the offset of an EvalError from its expression to the string that contains
// it.
func moved(err error, by int) error {
	if e, ok := err.(*EvalError); ok { //nolint:errorlint // Program.Eval returns it unwrapped
		e.Offset += by
	}
	return err
}

func appendText(b *strings.Builder, v any) error {
	if s, ok := v.(string); ok {
		b.WriteString(s)
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("the value cannot be written as JSON: %w", err)
	}
	b.Write(bytes.TrimRight(buf.Bytes(), "\n"))
	return nil
}
