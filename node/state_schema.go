package node

import "github.com/weir-run/weir/engine"

// StateChecker is a Host that knows the schemas of the state's keys.
type StateChecker interface {
	// CheckState says why a key of the state may not have a value, nil if it may.
	CheckState(key string, v engine.Value) error
}

// CheckState says why a key of the state may not have a value by its schema, nil if it may.
// Schemas are enforced when the node completes; a node that can correct a value checks
// before.
func (c *Ctx) CheckState(key string, v engine.Value) error {
	if f, ok := c.host.(StateChecker); ok {
		return f.CheckState(key, v)
	}
	return nil
}
