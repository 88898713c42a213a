package node

import "github.com/weir-run/weir/flow"

// Flows is a Host that knows the flows that its nodes' settings name.
type Flows interface {
	// Flow is the flow that a reference stands for, nil for none.
	Flow(ref string) *flow.Flow
}

// Flow is the flow that a reference in the node's settings stands for: what Child
// would run. It is nil where there is none.
func (c *Ctx) Flow(ref string) *flow.Flow {
	if h, ok := c.host.(Flows); ok {
		return h.Flow(ref)
	}
	return nil
}
