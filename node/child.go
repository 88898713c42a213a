package node

import (
	"errors"

	"github.com/weir-run/weir/engine"
)

// Children is a Host that can run flows as child runs: runs of their own, whose
// parent the node's run is.
type Children interface {
	// Child runs a flow as a child run, or returns how it ended. While it goes
	// on, or waits for somebody, the error is ErrSuspended. Name and the ordinal
	// of its use identify the child.
	Child(name string, c Child) (ChildResult, error)
}

// Child is what a child run begins with.
type Child struct {
	// Flow is the reference as the node's settings have it; the flow it stands
	// for is pinned by the flow of the run.
	Flow          string
	Inputs, State engine.Values
	// Isolation is "fresh" (an empty main context), "fork" (the child sees the
	// history of the node's context and writes to its own) or "share" (what the
	// child's main context gains, the node's context gains when the child
	// completes; the node keeps its turn until then). "" is the node's key of that
	// name, and fresh where it has none.
	Isolation string
	// KeepFailed has a child that failed for an earlier attempt stay failed, for a node
	// that went on after it; otherwise another is run.
	KeepFailed bool
}

// ChildResult is how a child run ended.
type ChildResult struct {
	Run     string
	Status  engine.Status // Completed, Failed or Cancelled
	Outputs engine.Values
	Error   *engine.Error
	// Answer is what a model said last in the child's main context, else what its
	// last node left there to be said; "" for none.
	Answer string
	Usage  engine.Usage
}

var errNoChildren = errors.New("this host runs no child runs")

// Child runs a flow as a child run; see Children.
func (c *Ctx) Child(name string, child Child) (ChildResult, error) {
	h, ok := c.host.(Children)
	if !ok {
		return ChildResult{}, errNoChildren
	}
	return h.Child(name, child)
}
