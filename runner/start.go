package runner

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// JournaledStart returns the start of a run from its journal.
func JournaledStart(ctx context.Context, j store.Journal, run string) (*engine.RunStarted, error) {
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
	return nil, notStartedError(run)
}

// StartCancelled starts a round that must start to free its session, and cancels it with the same commit: no node
// runs.
func (l *Local) StartCancelled(ctx context.Context, p *Program, b StartOptions, by, reason string) (*Execution, error) {
	var ack chan error
	x, fresh, err := l.getOrLoad(ctx, p, b.ID, loadNew, func(x *Execution) error {
		if err := x.stageStart(p, &b); err != nil {
			return err
		}
		ack = x.command(Cancel(by, reason))
		return nil
	})
	if err == nil && !fresh {
		ack = x.command(Cancel(by, reason))
	}
	if err != nil {
		return nil, err
	}
	return x, x.awaitAck(ctx, ack)
}
