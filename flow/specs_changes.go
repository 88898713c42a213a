package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SpecChange is a difference between a node type as a run was recorded with it and
// as it is now.
type SpecChange struct {
	// Type is the node type; What says what is different: "the input text is gone".
	Type, Difference string
	// Breaks: what the run has recorded of its nodes may mean something else under the
	// type as it is now. An input or output that was added does not break it.
	Breaks bool
}

// String names type and difference.
func (c SpecChange) String() string { return c.Type + ": " + c.Difference }

// Changes lists how the node types of a flow differ, by its fingerprint, from what they
// are in now. Versions are not compared.
func (s *Specs) Changes(fingerprint string, now *Specs) []SpecChange {
	was, is := s.Flows[fingerprint], now.Flows[fingerprint]
	var out []SpecChange
	for _, name := range slices.Sorted(maps.Keys(was.Types)) {
		out = append(out, was.Types[name].specChanges(name, is.Types[name])...)
	}
	for _, path := range slices.Sorted(maps.Keys(was.Nodes)) {
		out = append(out, was.Nodes[path].specChanges("node "+path, is.Nodes[path])...)
	}
	return slices.Compact(out)
}

func (s *NodeSpec) specChanges(name string, now *NodeSpec) (out []SpecChange) {
	if now == nil { // another node is the first of its type, or it has the spec of its type
		return nil
	}
	out = append(portChanges(name, "input", s.In, now.In), portChanges(name, "output", s.Out, now.Out)...)
	for _, f := range []struct {
		what    string
		was, is any
	}{
		{"whether it takes inputs of any name", s.AnyIn, now.AnyIn},
		{"whether it has outputs of any name", s.AnyOut, now.AnyOut},
		{"what it does with its context", s.Context, now.Context},
		{"whether it has a body", s.Composite, now.Composite},
		{"whether it makes a context", s.NewContext, now.NewContext},
		{"whether it passes its inputs through", s.PassThrough, now.PassThrough},
		{"whether it runs another flow", s.Uses, now.Uses},
	} {
		if f.was != f.is {
			out = append(out, SpecChange{name, f.what + " is different", true})
		}
	}
	return out
}

func portChanges(name, kind string, was, is []PortSpec) (out []SpecChange) {
	for _, p := range was {
		i := slices.IndexFunc(is, func(q PortSpec) bool { return q.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s is gone", kind, p.Name), true})
		case is[i] != p:
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s is different (was %s, is %s)", kind, p.Name, p, is[i]), true})
		}
	}
	for _, p := range is {
		if !slices.ContainsFunc(was, func(q PortSpec) bool { return q.Name == p.Name }) {
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s is new", kind, p.Name), p.Required && kind == "input"})
		}
	}
	return out
}

// String is the port's type with its flags.
func (p PortSpec) String() string {
	words := []string{string(p.Type)}
	for _, f := range []struct {
		on   bool
		name string
	}{{p.Required, "required"}, {p.Lazy, "lazy"}, {p.Many, "many"}, {p.Exclusive, "exclusive"}, {p.Branch, "branch"}} {
		if f.on {
			words = append(words, f.name)
		}
	}
	return strings.Join(words, " ")
}
