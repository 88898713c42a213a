package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// RunView is a run as it was after some event. It belongs to the caller.
type RunView struct {
	Run *engine.Run
	// Contexts are the run's conversation contexts, by id.
	Contexts map[string]convo.Context
	// Commits are the commits up to that event.
	Commits []engine.Commit
	// Inferred are node types without a recorded spec that this process does not have either: the ports of their
	// nodes are inferred from the edges.
	Inferred []string

	m *machine
}

// Result returns the result of the run at that event: what Run.Wait returns if it rests there.
func (v *RunView) Result() Result { return resultOf(v.Run) }

// NodeInputs are the inputs with which a node's function was entered.
type NodeInputs struct {
	// Values are those of the ports that are written as literals or as references to a recorded value.
	Values engine.Values
	// Templates are the templates and expressions of the other ports, as the flow has them.
	Templates engine.Values
	// Computed are what the templates give when they are evaluated again with what the journal has: the same as
	// then, unless a later version of the language evaluates them differently. Those that fail are not here.
	Computed engine.Values
}

// Inputs returns the inputs of a node's function, by port. They are known if the view is at an event that starts or
// resumes the node; otherwise ok is false.
func (v *RunView) Inputs(path string) (in NodeInputs, ok bool, err error) {
	e, ok := v.Run.Entry(path)
	if !ok {
		return NodeInputs{}, false, nil
	}
	in.Values = slices.Clone(e.Inputs)
	h, _ := e.Plan.Host.(*preparedNode)
	if h == nil {
		return in, true, nil
	}
	vars := v.m.templateVars(&e)
	for i := range h.bindings {
		b := &h.bindings[i]
		switch {
		case b.isLiteral:
			in.Values = append(in.Values, engine.Named{Name: b.name, Value: b.literal})
		case !b.singleRef:
			text, err := engine.Normalize(b.written)
			if err != nil {
				return in, true, fmt.Errorf("input %s: %w", b.name, err)
			}
			in.Templates = append(in.Templates, engine.Named{Name: b.name, Value: text})
			if slices.Contains(h.lazy, b.name) {
				continue // it may not have been evaluated
			}
			if x, err := b.eval(vars, "input"); err == nil {
				in.Computed = append(in.Computed, engine.Named{Name: b.name, Value: x})
			}
		case slices.Contains(h.lazy, b.name) || !slices.Contains(e.Bound, b.name):
		default:
			if x, err := b.eval(vars, "input"); err == nil { // else the reference had no value
				in.Values = append(in.Values, engine.Named{Name: b.name, Value: x})
			}
		}
	}
	return in, true, nil
}

// Inspect rebuilds a run as it was after event number at; 0 means all. It executes nothing and takes no lease.
func (l *Local) Inspect(ctx context.Context, p *Program, id string, at int64) (*RunView, error) {
	m := newMachine(id, p, &l.o.Services)
	m.journal = l.store
	v := &RunView{Run: m.run, m: m, Inferred: p.Inferred}
	for c, err := range l.store.Commits(ctx, id, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", id, err)
		}
		if at > 0 && c.First > at {
			break
		}
		if last := at - c.First + 1; at > 0 && last < int64(len(c.Events)) {
			c.Events = c.Events[:last]
		}
		if err := m.replay(c); err != nil && len(p.Inferred) > 0 {
			return nil, &engine.Error{
				Code: engine.CodeTypesUnknown, Permanent: true,
				Message: fmt.Sprintf("run %s was recorded by an earlier version, without its node types, and this process lacks %s: %v", id, strings.Join(p.Inferred, ", "), err),
				Hint:    "read it with a program that has these node types, or print its events: `" + engine.CommandLine("show", id, "--events") + "`",
			}
		} else if err != nil {
			return nil, err
		}
		v.Commits = append(v.Commits, c)
	}
	v.Contexts = maps.Clone(m.contexts)
	return v, nil
}
