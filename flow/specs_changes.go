package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SpecChange is a difference between a node type as recorded with a run and the present
// one.
type SpecChange struct {
	// Type is the node type; Difference describes the difference: "the input text is gone".
	Type, Difference string
	// Breaks says that the records of the run may have another meaning under the present
	// type. An added input or output does not break it.
	Breaks bool
}

// String returns type and difference.
func (c SpecChange) String() string { return c.Type + ": " + c.Difference }

// Changes lists the differences between the recorded node types of a flow, by its
// fingerprint, and the present ones. Versions are not compared.
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
	if now == nil { // another node has the spec of the type
		return nil
	}
	out = append(portChanges(name, "input", s.In, now.In), portChanges(name, "output", s.Out, now.Out)...)
	for _, f := range []struct {
		what    string
		was, is any
	}{
		{"whether it accepts inputs of any name", s.AnyIn, now.AnyIn},
		{"whether it has outputs of any name", s.AnyOut, now.AnyOut},
		{"how it uses its context", s.Context, now.Context},
		{"whether it has a body", s.Composite, now.Composite},
		{"whether it has branches", s.Branches, now.Branches},
		{"whether it creates a context", s.NewContext, now.NewContext},
		{"whether it passes its inputs through", s.PassThrough, now.PassThrough},
		{"whether it runs another flow", s.Uses, now.Uses},
	} {
		if f.was != f.is {
			out = append(out, SpecChange{name, f.what + " has changed", true})
		}
	}
	return out
}

func portChanges(name, kind string, was, is []PortSpec) (out []SpecChange) {
	for _, p := range was {
		i := slices.IndexFunc(is, func(q PortSpec) bool { return q.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s was removed", kind, p.Name), true})
		case is[i] != p:
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s has changed (was %s, is %s)", kind, p.Name, p, is[i]), true})
		}
	}
	for _, p := range is {
		if !slices.ContainsFunc(was, func(q PortSpec) bool { return q.Name == p.Name }) {
			out = append(out, SpecChange{name, fmt.Sprintf("the %s %s was added", kind, p.Name), p.Required && kind == "input"})
		}
	}
	return out
}

// String returns the port's type with its flags.
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
