package node

import "github.com/weir-run/weir/engine"

// Fitter is a Host that knows the schemas of the state's keys.
type Fitter interface {
	// Fits says why a key of the state may not hold a value, nil where it may.
	Fits(key string, v engine.Value) error
}

// Fits says why a key of the state may not hold a value by its schema, nil where it
// may. Schemas hold in any case when the node completes; a node that can do
// something about it asks before.
func (c *Ctx) Fits(key string, v engine.Value) error {
	if f, ok := c.host.(Fitter); ok {
		return f.Fits(key, v)
	}
	return nil
}
