// Package tool is what models can call: a name, a schema and a function.
//
// It must not know flows, contexts or models; calling a tool is an effect of
// the node that does it.
package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Tool is something a model can call.
type Tool struct {
	// Name matches [a-zA-Z0-9_-]{1,64}.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments, an object; nil takes none.
	Parameters map[string]any
	// ReadOnly tools may be called again when an outcome is unknown.
	ReadOnly bool
	// Ends makes a call of this tool the last step of the model's turn: its
	// result is recorded and the model is not asked again.
	Ends bool
	// Call runs the tool. Arguments is the JSON text the model wrote; Key is
	// the call's idempotency key. The text returned is data for the model and
	// nothing else; an error is told to the model as a failed result.
	Call func(ctx context.Context, call Call) (string, error)
}

// Call is one call of a tool.
type Call struct {
	Key       string
	Arguments string
}

// Set holds tools by name.
type Set struct {
	byName map[string]*Tool
	names  []string
}

// NewSet makes a set; two tools of one name, or a bad name, are an error.
func NewSet(tools ...*Tool) (*Set, error) {
	s := &Set{byName: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if !validName(t.Name) {
			return nil, fmt.Errorf("tool name %q: use 1 to 64 letters, digits, _ or -", t.Name)
		}
		if s.byName[t.Name] != nil {
			return nil, fmt.Errorf("two tools are named %q", t.Name)
		}
		if t.Call == nil {
			return nil, fmt.Errorf("tool %q has no Call", t.Name)
		}
		s.byName[t.Name] = t
		s.names = append(s.names, t.Name)
	}
	slices.Sort(s.names)
	return s, nil
}

func validName(s string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}

// Get returns the tool of that name, nil where there is none. A nil Set is empty.
func (s *Set) Get(name string) *Tool {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// Names lists the tools in alphabetical order.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.names)
}
