package history

import (
	"context"

	"github.com/weir-run/weir/runner"
)

// Inspector returns runs as they were after an event. *Reader and *weir.Weir are ones.
type Inspector interface {
	Inspect(ctx context.Context, run string, at int64) (*runner.RunView, error)
}

// NodeInputs returns the inputs with which a node was last entered, as far as they are recorded; none if it has not
// started.
func NodeInputs(ctx context.Context, r Inspector, run string, n *NodeRecord) (runner.NodeInputs, error) {
	if n.Entered == 0 {
		return runner.NodeInputs{}, nil
	}
	then, err := r.Inspect(ctx, run, n.Entered)
	if err != nil {
		return runner.NodeInputs{}, err
	}
	in, _, err := then.Inputs(n.Path)
	return in, err
}
