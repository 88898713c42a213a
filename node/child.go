package node

import (
	"errors"

	"github.com/weir-run/weir/engine"
)

// Children is a Host that can run flows as child runs of the node's run.
type Children interface {
	// Child runs a flow as a child run, or returns its outcome. While the child executes or
	// waits, the error is ErrSuspended. Name and the ordinal of its use identify the child.
	Child(name string, c Child) (ChildResult, error)
}

// Child describes the start of a child run.
type Child struct {
	// Flow is the reference in the node's settings; the flow itself is pinned by the flow
	// of the run.
	Flow string
	// Tool is the name of the tool whose flow is run instead of Flow. The run pins its
	// definition, as that of every tool.
	Tool          string
	Inputs, State engine.Values
	// Isolation is "fresh" (an empty main context), "fork" (the child sees the history of
	// the node's context and writes to its own) or "share" (messages added to the child's
	// main context are added to the node's context when the child completes; the node keeps
	// its turn until then). "" means the node's key of that name, or fresh if it has none.
	Isolation string
	// KeepFailed keeps the failed child of an earlier attempt, for a node that continued
	// after the failure. Otherwise a new child is started.
	KeepFailed bool
}

// ChildResult is the outcome of a child run.
type ChildResult struct {
	Run     string
	Status  engine.Status // Completed, Failed or Cancelled
	Outputs engine.Values
	Error   *engine.Error
	// Answer is the last answer of a model in the child's main context, or else the current
	// output of that context; "" for none.
	Answer string
	Usage  engine.Usage
}

var errNoChildren = errors.New("this host does not support child runs")

// Child runs a flow as a child run; see Children.
func (c *Ctx) Child(name string, child Child) (ChildResult, error) {
	h, ok := c.host.(Children)
	if !ok {
		return ChildResult{}, errNoChildren
	}
	return h.Child(name, child)
}
