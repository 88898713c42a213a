package node

import "github.com/weir-run/weir/flow"

// Flows is a Host that knows the flows that its nodes' settings name.
type Flows interface {
	// Flow returns the flow of a reference, nil for none.
	Flow(ref string) *flow.Flow
}

// Flow returns the flow of a reference in the node's settings, which Child would run; nil
// for none.
func (c *Ctx) Flow(ref string) *flow.Flow {
	if h, ok := c.host.(Flows); ok {
		return h.Flow(ref)
	}
	return nil
}
