package history

import (
	"context"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// Inspector returns runs as they were after an event. *Reader and *weir.Weir are ones.
type Inspector interface {
	Inspect(ctx context.Context, run string, at int64) (*runner.RunView, error)
}

// NodeInputs returns the inputs with which a node was last entered. They are nil if it has
// not started, or failed because an input could not be evaluated: its error names it.
func NodeInputs(ctx context.Context, r Inspector, run string, n *NodeRecord) (engine.Values, error) {
	if n.Entered == 0 {
		return nil, nil
	}
	then, err := r.Inspect(ctx, run, n.Entered)
	if err != nil {
		return nil, err
	}
	in, _, err := then.Inputs(n.Path)
	if err != nil {
		return nil, nil //nolint:nilerr // the error of the node says so
	}
	return in, nil
}
