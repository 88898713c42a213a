package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

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

// checkRepeats returns an error if the run that exists under the id was started in another way: its result would
// be taken for that of this start. A run of another flow is refused elsewhere, with what has changed.
func (b *StartOptions) checkRepeats(ctx context.Context, j store.Journal, p *Program) error {
	was, err := JournaledStart(ctx, j, b.ID)
	if e, isEngine := errors.AsType[*engine.Error](err); isEngine && e.Code == engine.CodeFork { // a fork, or a run without a commit
		return nil
	}
	if err != nil || was.Fingerprint != p.Fingerprint {
		return err
	}
	what := b.differsFrom(was)
	if what == "" {
		return nil
	}
	return &engine.Error{
		Code: engine.CodeRequestReused, Permanent: true,
		Message: fmt.Sprintf("run %s exists and was started with %s", b.ID, what),
		Hint:    fmt.Sprintf("give the new run another id; `%s` continues the one that exists", engine.CommandLine("resume", b.ID)),
	}
}

// differsFrom says what of a start another one had differently, "" for nothing.
func (b *StartOptions) differsFrom(was *engine.RunStarted) string {
	for _, v := range b.Inputs {
		if w, ok := was.Inputs.Get(v.Name); !ok || !reflect.DeepEqual(v.Value, w) {
			return fmt.Sprintf("another input %q", v.Name)
		}
	}
	for _, v := range was.Inputs {
		if _, ok := b.Inputs.Get(v.Name); !ok {
			return fmt.Sprintf("another input %q", v.Name)
		}
	}
	for _, v := range b.State {
		if w, ok := was.State.Get(v.Name); !ok || !reflect.DeepEqual(v.Value, w) {
			return fmt.Sprintf("another state %q", v.Name)
		}
	}
	switch {
	case b.User != was.User:
		return "another user"
	case !slices.Equal(b.Targets, was.Targets):
		return "other targets"
	case !slices.Equal(b.Breaks, was.Breaks):
		return "other nodes to pause before"
	}
	return ""
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
