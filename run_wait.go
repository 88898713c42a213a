package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Wait returns when the run has ended, or is paused until a person answers or an outside event
// arrives. Questions that were answered in another process, or through another Run, are not
// returned: Wait then continues the run here, or waits while another process executes it.
// Cancelling ctx ends the wait, not the run.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	if r.w.runner != nil {
		return r.w.waitForWorker(ctx, r.ID)
	}
	pause := time.Millisecond
	for tries := 0; ; {
		x := r.execution()
		result, err := x.Wait(ctx)
		if err != nil || result.Status != engine.Paused || tries == maxStaleTries {
			return result, err
		}
		if open, err := x.AllOpen(ctx); open || err != nil {
			return result, nil //nolint:nilerr // the result is that of the execution in any case
		}
		next, err := r.w.rejoin(ctx, r.ID)
		switch {
		case err == nil && next == x: // it has not ended yet
		case err == nil:
			_ = r.setExecution(&Run{exec: next}, nil)
			tries++ // a child reports its answer soon
		case !errors.Is(err, store.ErrOwned):
			return result, nil // for example a run whose flow this process lacks
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
		pause = min(2*pause, maxStalePause)
	}
}

// rejoin continues a run of which a question was answered elsewhere.
func (w *Weir) rejoin(ctx context.Context, id string) (*runner.Execution, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.local.Rejoin(ctx, p, id, "")
}

// A run is continued at most so often for answered questions that it still lists, with a pause
// between that grows to maxStalePause.
const (
	maxStaleTries = 20
	maxStalePause = 250 * time.Millisecond
)
