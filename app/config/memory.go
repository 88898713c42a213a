package config

import (
	"maps"
	"reflect"
)

// Memory says whether the memory tools are offered, and how they work.
type Memory struct {
	Offered bool `json:"offered"` // it is there and is not false
	// Namespace keeps the memory apart from that of others; "" is the name of the
	// flow.
	Namespace string `json:"namespace"`
	MaxItems  int    `json:"maxItems"` // of a user; 0 is the default
	Approve   string `json:"approve"`  // of what writes and forgets: "always", "once", "never" or ""
}

// memoryHook reads a Memory that is given as true, false or settings.
func memoryHook(_, to reflect.Type, v any) (any, error) {
	if to != reflect.TypeFor[Memory]() {
		return v, nil
	}
	switch m := v.(type) {
	case bool:
		return Memory{Offered: m}, nil
	case map[string]any:
		m = maps.Clone(m)
		m["offered"] = true
		return m, nil
	}
	return v, nil
}
