// Package template evaluates texts in the declaration of a tool that refer to
// arguments of a call and to secrets by name, and removes these secrets from results.
//
// It must not know what a tool does with a text, or evaluate anything: it looks up a
// reference, and does not evaluate the inserted value.
package template

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kind says what a reference is looked up in.
type Kind string

// The kinds of reference; Literal is text between them.
const (
	Literal Kind = ""
	Args    Kind = "args"
	Secret  Kind = "secrets"
)

// Part is literal text or one reference.
type Part struct {
	Kind Kind
	Text string   // of a literal
	Path []string // of a reference, after its kind; a secret's has one element
}

// Template is a template, its parts in order.
type Template []Part

// Parse reads a template: {{ args.NAME }}, {{ args.NAME.MEMBER }} and
// {{ secrets.NAME }} are references, everything outside of {{ }} is literal.
// The error names what stands between braces and is none of these.
func Parse(s string) (Template, error) {
	var t Template
	for {
		before, rest, found := strings.Cut(s, "{{")
		if before != "" {
			t = append(t, Part{Text: before})
		}
		if !found {
			return t, nil
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("{{ is not closed in %q", s)
		}
		p, err := reference(strings.TrimSpace(inside))
		if err != nil {
			return nil, err
		}
		t, s = append(t, p), after
	}
}

func reference(s string) (Part, error) {
	words := strings.Split(s, ".")
	kind := Kind(words[0])
	for _, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\r\n(){}[]\"'") {
			kind = Literal
		}
	}
	if len(words) < 2 || kind != Args && kind != Secret || kind == Secret && len(words) != 2 {
		return Part{}, fmt.Errorf("{{ %s }}: expected args.NAME or secrets.NAME", s)
	}
	return Part{Kind: kind, Path: words[1:]}, nil
}

// SingleReference returns the reference that a template consists of, if it is nothing else.
func (t Template) SingleReference() (Part, bool) {
	if len(t) == 1 && t[0].Kind != Literal {
		return t[0], true
	}
	return Part{}, false
}

// HasKind reports whether a template refers to anything of that kind.
func (t Template) HasKind(k Kind) bool {
	for _, p := range t {
		if p.Kind == k {
			return true
		}
	}
	return false
}

// Expand writes the template out. Arguments read as String says; one that is
// not there is "". The error names a secret that is not there.
func (t Template) Expand(args map[string]any, secrets *Secrets) (string, error) {
	var b strings.Builder
	for _, p := range t {
		switch p.Kind {
		case Args:
			v, _ := p.Value(args)
			b.WriteString(FormatValue(v))
		case Secret:
			s, err := secrets.Get(p.Path[0])
			if err != nil {
				return "", err
			}
			b.WriteString(s)
		case Literal:
			b.WriteString(p.Text)
		}
	}
	return b.String(), nil
}

// Value returns what a reference to an argument stands for, and whether it is there.
func (p Part) Value(args map[string]any) (any, bool) {
	var v any = args
	for _, name := range p.Path {
		object, _ := v.(map[string]any)
		member, ok := object[name]
		if !ok {
			return nil, false
		}
		v = member
	}
	return v, v != nil
}

// FormatValue returns a JSON value as text: a text as it is, null as "", a number as it
// was written, anything else as JSON.
func FormatValue(v any) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return t
	case json.Number:
		return t.String()
	}
	b, err := json.Marshal(v)
	if err != nil { // not JSON; a caller's values are
		return ""
	}
	return string(b)
}
