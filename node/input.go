package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// CheckInput normalises a value for an input of a flow, or says why it does not fit the
// input's type and schema. A text for an input of type message becomes a user message.
func CheckInput(in flow.Input, v any) (engine.Value, error) {
	n, err := engine.Normalize(v)
	if err != nil {
		return nil, err
	}
	if in.Type == flow.TypeMessage {
		if n, err = Coerce(in.Type, n); err != nil {
			return nil, err
		}
	}
	if !fitsType(in.Type, n) {
		return nil, fmt.Errorf("expected %s, got %s", in.Type, engine.KindOf(n))
	}
	if err := checkMessages(in.Type, n); err != nil {
		return nil, err
	}
	if in.Schema != nil {
		s, err := CompileSchema(in.Schema)
		if err != nil {
			return nil, err
		}
		if err := s.Check(n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// CheckInputs checks inputs against the declared ones, sets defaults, and returns them in
// the declared order. The error names every input that is missing, unknown or invalid.
func CheckInputs(declared []flow.Input, given engine.Values) (engine.Values, error) {
	var out engine.Values
	var problems []error
	for _, in := range declared {
		v, ok := given.Get(in.Name)
		if !ok {
			if in.Default == nil {
				if in.Required {
					problems = append(problems, fmt.Errorf("input %q is required (%s)", in.Name, in.Type))
				}
				continue
			}
			v = in.Default
		}
		n, err := CheckInput(in, v)
		if err != nil {
			problems = append(problems, fmt.Errorf("input %q: %w", in.Name, err))
			continue
		}
		out = append(out, engine.Named{Name: in.Name, Value: n})
	}
	for _, g := range given {
		if !slices.ContainsFunc(declared, func(in flow.Input) bool { return in.Name == g.Name }) {
			problems = append(problems, fmt.Errorf("the flow has no input %q", g.Name))
		}
	}
	return out, errors.Join(problems...)
}

// checkMessages checks an input that is a message, or a list of messages and texts.
func checkMessages(t flow.PortType, v engine.Value) error {
	switch t {
	case flow.TypeMessage:
		if m, ok := v.(map[string]any); ok {
			if !isMessage(m) {
				return errors.New("expected a message, which is a text or an object with role and text")
			}
			return CheckMessage(m)
		}
	case flow.TypeMessages:
		list, _ := v.([]any)
		for i, e := range list {
			if m, ok := e.(map[string]any); ok {
				if err := checkMessages(flow.TypeMessage, m); err != nil {
					return fmt.Errorf("element %d: %w", i, err)
				}
			}
		}
	default:
	}
	return nil
}

func fitsType(t flow.PortType, v engine.Value) bool {
	switch t {
	case flow.TypeText:
		_, ok := v.(string)
		return ok
	case flow.TypeNumber:
		return engine.KindOf(v) == "a number"
	case flow.TypeBool:
		_, ok := v.(bool)
		return ok
	case flow.TypeObject, flow.TypeMessage, flow.TypeFile:
		_, ok := v.(map[string]any)
		return ok
	case flow.TypeList, flow.TypeMessages, flow.TypeTools:
		_, ok := v.([]any)
		return ok
	case flow.TypeContext:
		_, ok := v.(engine.Handle)
		return ok
	case flow.TypeAny:
	}
	return true
}
