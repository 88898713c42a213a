package runner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
)

// scopeVars are the names that templates in a scope may read.
type scopeVars struct {
	scope engine.Scope
	state engine.State
	run   map[string]any
	now   time.Time
	seed  string // of uuid(n)
}

// Lookup resolves inputs, state, run, the nodes of the scope, and now, unless a node has that
// id.
func (v *scopeVars) Lookup(name string) (any, bool) {
	switch name {
	case "inputs":
		return object(v.scope.Inputs()), true
	case "state":
		return v.state.Members(), true
	case "run":
		return v.run, true
	case expr.UUIDSeed:
		return v.seed, true
	}
	out, ended, ok := v.scope.Outputs(name)
	switch {
	case !ok && name == "now":
		return v.now, true
	case !ended:
		out = nil
	}
	return object(out), ok
}

// object makes Values readable by expressions.
type object engine.Values

// Get returns the value of a name.
func (o object) Get(name string) (any, bool) { return engine.Values(o).Get(name) }

// Len returns the number of names.
func (o object) Len() int { return len(o) }

// All returns the values by name.
func (o object) All() map[string]any { return engine.Values(o).Map() }

// eval evaluates the binding. The error names its target ("input x", "output y"), says why a node that it reads has
// no value, and has the position in the flow file.
func (b *binding) eval(v *scopeVars, what string) (engine.Value, error) {
	x, err := b.tpl.Eval(v)
	if err == nil {
		x, err = engine.Normalize(x)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w%s", what, b.name, v.explainError(err), positionText(b.pos))
	}
	return x, nil
}

// isAbsent reports whether an error of eval means that the template as a whole is an optional
// value without a value.
func (b *binding) isAbsent(err error) bool {
	e, ok := errors.AsType[*expr.EvalError](err)
	return ok && e.Absent && b.tpl.Program() != nil
}

// positionText returns a position in a flow file for the end of an error, "" if the flow was not read from one.
func positionText(p flow.Pos) string {
	if p.Line == 0 {
		return ""
	}
	return " (" + p.String() + ")"
}

// evalOutputs evaluates the outputs of a scope. An output that is exactly one reference is absent if its source has
// no value; absent has these with the reason. In any other template a missing value is an error.
func evalOutputs(v *scopeVars) (out, absent engine.Values, err error) {
	from, to := v.scope.OutputRange()
	bs := v.scope.Graph().Host.([]binding)[from:to]
	out = make(engine.Values, 0, len(bs))
	for i := range bs {
		b := &bs[i]
		if b.isLiteral {
			out = append(out, engine.Named{Name: b.name, Value: b.literal})
			continue
		}
		if why := v.absent(b); why != "" {
			absent = append(absent, engine.Named{Name: b.name, Value: why})
			continue
		}
		x, err := b.eval(v, "output")
		if b.isAbsent(err) {
			absent = append(absent, engine.Named{Name: b.name, Value: "the optional value " + strings.TrimSpace(b.tpl.Program().Source()) + " has no value"})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		out = append(out, engine.Named{Name: b.name, Value: x})
	}
	return out, absent, nil
}

// absent returns why a binding that is one reference to a port has no value, "" if it has one, or is not a reference.
func (v *scopeVars) absent(b *binding) string {
	if !b.singleRef {
		return ""
	}
	path := b.tpl.Program().Path()
	out, ended, ok := v.scope.Outputs(path[0])
	switch {
	case !ok || len(path) < 2:
		return ""
	case ended:
		if _, given := out.Get(path[1]); given {
			return ""
		}
	}
	return v.absenceReason(path[0], path[1])
}

// absenceReason returns why a port has no value.
func (v *scopeVars) absenceReason(id, port string) string {
	switch status := v.scope.Status(id); status {
	case engine.Skipped:
		if from := v.scope.UntakenEdge(id); from != "" {
			return fmt.Sprintf("%s was skipped, since %s gave nothing", id, from)
		}
		return id + " was skipped"
	case engine.Failed:
		if f := v.scope.Failure(id); f != nil {
			return fmt.Sprintf("%s failed (%s)", id, f.Code)
		}
		return id + " failed"
	case engine.NotNeeded:
		return id + " was not needed"
	case engine.Completed:
		return fmt.Sprintf("%s gave nothing on its port %s", id, port)
	default:
		return fmt.Sprintf("%s is %s", id, status)
	}
}

// explainError adds to an error of an expression why a node has no value.
func (v *scopeVars) explainError(err error) error {
	e, ok := errors.AsType[*expr.EvalError](err)
	if !ok || e.Missing == nil || len(e.Missing.Path) != 1 {
		return err
	}
	id, port := e.Missing.Root, e.Missing.Path[0]
	if _, _, node := v.scope.Outputs(id); !node {
		return err
	}
	return fmt.Errorf("%w: %s; has(%s) tests for it", err, v.absenceReason(id, port), expr.Join(id, port))
}
