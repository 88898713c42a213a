package engine

import (
	"encoding/json"
	"fmt"
)

// KindOf names the kind of a value in messages: "null", "a bool", "a number", "a text", "a list", "an object" or "a
// context". Numbers of code that are not normalised yet are numbers; another type that is no Value is named as in Go.
func KindOf(v Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case int64, float64, json.Number, int:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case Handle:
		return "a context"
	}
	return fmt.Sprintf("a %T", v)
}
