package session

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// driveRound continues the current round of the session.
func (c *driver) driveRound(ctx context.Context, row *store.Session) (moved bool, err error) {
	run := row.Holder
	if x := c.m.held(run); x != nil {
		return true, c.awaitRound(ctx, run, x)
	}
	c.watch.set(run)
	r, err := c.m.store.Run(ctx, run)
	if err != nil {
		return false, err
	}
	switch {
	case r.Commits == 0:
		return c.restartRound(ctx, row, &r)
	case r.Head.Status == engine.Paused:
		return c.answerPausedRound(ctx, row, &r)
	case r.Head.Status.Ended():
		return false, nil // the session is about to be released
	}
	on, err := c.continueRun(ctx, run)
	if isHandledElsewhere(err) || err == nil && on == nil {
		return c.pollRemoteRound(ctx, &r)
	}
	if err != nil {
		return false, err
	}
	return true, c.awaitRound(ctx, run, on)
}

// continueRun continues a run that this process does not execute. The execution is nil if another process has it.
func (c *driver) continueRun(ctx context.Context, run string) (*runner.Execution, error) {
	if c.m.remote && c.awakened == run {
		return nil, nil
	}
	x, err := c.m.runs.Continue(ctx, run)
	if err == nil && x == nil {
		c.awakened = run
	}
	return x, err
}

// held returns the execution of a run by this process, nil for none.
func (m *Manager) held(run string) *runner.Execution {
	return m.live(m.local.Held(run))
}

// live returns an execution that executes its run, nil for one that only records.
func (m *Manager) live(x *runner.Execution) *runner.Execution {
	if m.remote {
		return nil
	}
	return x
}

// restartRound starts a round that has no commit: the process that created it has died, or
// has not started it yet.
func (c *driver) restartRound(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	q, err := c.m.store.RoundMessage(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if q.Value == nil {
		return false, nil // another process has started it
	}
	_, f := c.replyTo(q.ID)
	if f.Fingerprint() != r.Fingerprint {
		if f, err = c.m.runs.Flow(ctx, r.Fingerprint); err != nil {
			return false, err
		}
	}
	said, err := c.m.readQueued(ctx, &q)
	if err != nil {
		return false, err
	}
	return c.startRound(ctx, f, row, r.ID, q.ID, said)
}

// awaitRound waits for a round that this process executes.
func (c *driver) awaitRound(ctx context.Context, run string, x *runner.Execution) error {
	t, err := c.replyOfRun(ctx, run)
	if err != nil {
		return err
	}
	if t != nil {
		t.attachIfNew(run, x)
	}
	r, err := x.Wait(ctx)
	return c.completeReply(ctx, t, r, err)
}

// replyOfRun returns the reply whose message started a round, nil if the message was sent
// elsewhere.
func (c *driver) replyOfRun(ctx context.Context, run string) (*Reply, error) {
	q, err := c.m.store.RoundMessage(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	t, _ := c.replyTo(q.ID)
	return t, nil
}

// pollRemoteRound reads the state of a round that another process executes.
func (c *driver) pollRemoteRound(ctx context.Context, r *store.Run) (bool, error) {
	t, err := c.replyOfRun(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if t != nil {
		t.attachIfNew(r.ID, nil)
	}
	return c.completeTakenReplies(ctx)
}
