package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// Coerce converts a value to a port type by the coercions that flow.Assignable lists, or
// says why it cannot. A value that fits is returned unchanged; null fits every type.
func Coerce(t flow.PortType, v engine.Value) (engine.Value, error) {
	if v == nil || fitsType(t, v) {
		return v, nil
	}
	switch t {
	case flow.TypeText:
		switch x := v.(type) {
		case bool, int64, float64:
			return TextOf(v), nil
		case map[string]any:
			if isMessage(x) {
				return TextOf(v), nil
			}
		}
	case flow.TypeMessage:
		if s, ok := v.(string); ok {
			return map[string]any{"role": "user", "text": s}, nil
		}
	case flow.TypeMessages:
		if m, ok := v.(map[string]any); ok && isMessage(m) {
			return []any{v}, nil
		}
	default:
	}
	return nil, fmt.Errorf("expected %s, got %s", t, engine.KindOf(v))
}

// isMessage reports whether an object is a message.
func isMessage(m map[string]any) bool {
	role, _ := m["role"].(string)
	return role != ""
}

// CheckMessage returns what is wrong with an object that stands for a message: a member that messages do not have or of
// another type, which would be lost, or no content. Messages of histories and of traces of agents pass.
func CheckMessage(o map[string]any) error {
	content := false
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, ok := o[name], true
		switch name {
		case "role", "id", "name", "reasoning", "call", "call_id", "provider":
			_, ok = v.(string)
		case "pinned", "failed":
			_, ok = v.(bool)
		case "priority":
			var n int64
			n, ok = v.(int64)
			ok = ok && n >= 0 && n <= maxPriority
		case "text", "parts", "calls":
			content = true
		case "metadata", "native":
		default:
			return fmt.Errorf("a message has no member %q: it has role, text, parts, name, id, pinned and priority", name)
		}
		if !ok && v != nil {
			return fmt.Errorf("the member %s of a message cannot be %s", name, engine.KindOf(v))
		}
	}
	if !content {
		return errors.New("the message has neither text nor parts")
	}
	return nil
}

// maxPriority is the highest priority of a message.
const maxPriority = 100
