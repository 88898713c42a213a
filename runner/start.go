package runner

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine"
)

// StartIn is how a run began, as its journal has it.
func StartIn(ctx context.Context, j Journal, run string) (*engine.RunStarted, error) {
	for c, err := range j.Commits(ctx, run, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		if len(c.Events) > 0 {
			if s, ok := c.Events[0].(*engine.RunStarted); ok {
				return s, nil
			}
		}
		break
	}
	return nil, neverStarted(run)
}
