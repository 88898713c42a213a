package starlark

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	lang "go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// check finds problems in the code without running it.
func check(r *request) *report {
	w, err := newEnvironment(r)
	if err != nil {
		return &report{Kind: kindFailed, Message: err.Error()}
	}
	var list []problem
	f, err := options().Parse(fileName, r.Code, 0)
	if err != nil {
		list = problemsOf(err)
	} else {
		if err := resolve.File(f, w.names.Has, lang.Universe.Has); err != nil {
			list = problemsOf(err)
		} else if line := contextAssignment(f); line > 0 {
			list = append(list, problem{line, "the name context is assigned; change it in place: context['key'] = value, context.update({...})"})
		}
		list = append(list, missingKeys(f, w.names)...)
	}
	slices.SortStableFunc(list, func(a, b problem) int { return cmp.Compare(a.Line, b.Line) })
	return &report{Kind: kindProblems, Problems: list}
}

// keyReads describes the accesses of code to the keys of one of its dicts.
type keyReads struct {
	name string
	lang *lang.Dict
	// firstReads are the keys that it reads, with the line of the first access.
	firstReads map[string]int
	// known are keys that it sets or tests for; free means that it may set any key.
	known     map[string]bool
	anyKeySet bool
}

// missingKeys finds keys that are read by name and never set. If the code passes the dict on, or tests for keys, it
// finds nothing.
func missingKeys(f *syntax.File, names lang.StringDict) []problem {
	var list []problem
	for _, name := range []string{"context", "inputs", "files"} {
		d, _ := names[name].(*lang.Dict)
		r := &keyReads{name: name, lang: d, firstReads: map[string]int{}, known: map[string]bool{}}
		for _, s := range f.Stmts {
			syntax.Walk(s, r.visit)
		}
		if r.anyKeySet {
			continue
		}
		for key, line := range r.firstReads {
			if _, found, _ := d.Get(lang.String(key)); !found && !r.known[key] {
				list = append(list, problem{line, r.missing(key)})
			}
		}
	}
	slices.SortFunc(list, func(a, b problem) int { return strings.Compare(a.Message, b.Message) })
	return list
}

func (r *keyReads) missing(key string) string {
	keys := make([]string, 0, r.lang.Len())
	for _, k := range r.lang.Keys() {
		text, _ := lang.AsString(k)
		keys = append(keys, text)
	}
	if len(keys) == 0 {
		return fmt.Sprintf("%s has no key %q; it is empty", r.name, key)
	}
	const shown = 20
	more := ""
	if len(keys) > shown {
		keys, more = keys[:shown], ", ..."
	}
	return fmt.Sprintf("%s has no key %q; it has %s%s", r.name, key, strings.Join(keys, ", "), more)
}

// visit visits one node of the syntax tree; false means that its children were visited.
func (r *keyReads) visit(n syntax.Node) bool {
	switch t := n.(type) {
	case *syntax.AssignStmt:
		return r.assignment(t)
	case *syntax.IndexExpr:
		if !r.isDict(t.X) {
			return true
		}
		if key, ok := text(t.Y); ok {
			r.read(key, t)
			return false
		}
		syntax.Walk(t.Y, r.visit)
		return false // a computed key says nothing about others
	case *syntax.BinaryExpr:
		if (t.Op == syntax.IN || t.Op == syntax.NOT_IN) && r.isDict(t.Y) {
			r.markKnown(t.X)
			return false
		}
	case *syntax.CallExpr:
		return r.call(t)
	case *syntax.Ident:
		if t.Name == r.name {
			r.anyKeySet = true // passed on, or reassigned
		}
	}
	return true
}

func (r *keyReads) assignment(s *syntax.AssignStmt) bool {
	target, ok := s.LHS.(*syntax.IndexExpr)
	if !ok || !r.isDict(target.X) {
		return true
	}
	key, literal := text(target.Y)
	switch {
	case !literal:
		r.anyKeySet = true
	case s.Op == syntax.EQ:
		r.known[key] = true
	default:
		r.read(key, target) // += reads it first
	}
	syntax.Walk(s.RHS, r.visit)
	return false
}

// call handles methods of the dict; len(context) and similar calls only read.
func (r *keyReads) call(c *syntax.CallExpr) bool {
	dot, ok := c.Fn.(*syntax.DotExpr)
	if ok && r.isDict(dot.X) {
		switch dot.Name.Name {
		case "get", "setdefault", "pop":
			if len(c.Args) > 0 {
				r.markKnown(c.Args[0])
			}
		case "keys", "values", "items", "clear", "popitem":
		default:
			r.anyKeySet = true
		}
		for _, a := range c.Args {
			syntax.Walk(a, r.visit)
		}
		return false
	}
	fn, ok := c.Fn.(*syntax.Ident)
	looks := ok && slices.Contains([]string{"len", "sorted", "list", "print", "str", "repr", "type", "dict", "bool"}, fn.Name)
	if looks && len(c.Args) == 1 && r.isDict(c.Args[0]) {
		return false
	}
	return true
}

func (r *keyReads) isDict(e syntax.Expr) bool {
	id, ok := e.(*syntax.Ident)
	return ok && id.Name == r.name
}

func (r *keyReads) read(key string, at syntax.Node) {
	start, _ := at.Span()
	if line, ok := r.firstReads[key]; !ok || int(start.Line) < line {
		r.firstReads[key] = int(start.Line)
	}
}

func (r *keyReads) markKnown(e syntax.Expr) {
	if key, ok := text(e); ok {
		r.known[key] = true
	}
}

func text(e syntax.Expr) (string, bool) {
	lit, ok := e.(*syntax.Literal)
	if !ok || lit.Token != syntax.STRING {
		return "", false
	}
	s, ok := lit.Value.(string)
	return s, ok
}
