package node

import (
	"fmt"

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
