package session

import (
	"context"
	"errors"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// answerPausedRound answers the question of the round with the first queued message that
// fits it.
func (c *driver) answerPausedRound(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	if moved, err = c.reanswerFirstQuestion(ctx, row, r); moved || err != nil {
		return moved, err
	}
	if moved, err = c.completeTakenReplies(ctx); moved || err != nil {
		return moved, err
	}
	list, err := c.m.store.Queue(ctx, c.id)
	if err != nil {
		return false, err
	}
	for i := range list {
		q := &list[i]
		if _, ok := engine.ReadRepeat(q.Value); ok {
			continue // it starts a round, and answers nothing
		}
		a, err := c.m.answerTo(ctx, row, r, decodeQueuedInput(q.Value))
		if err == nil {
			return c.answerRound(ctx, row, r, q, a)
		}
		// RefuseQueued keeps the message if the round has changed since it was read.
		t, _ := c.replyTo(q.ID)
		if t != nil && t.recovered {
			c.m.drivers.complete(t, runner.Result{}, &StalledError{Session: c.id, Err: err})
		} else if t != nil {
			if err := c.reject(t, err, c.m.store.RefuseQueued(ctx, q.ID, r.ID, r.Commits)); err != nil {
				return moved, err
			}
			moved = true
		}
	}
	return moved, nil
}

// reanswerFirstQuestion is answerFirstQuestion for a round whose process died before it
// had answered.
func (c *driver) reanswerFirstQuestion(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	a, ok, err := c.firstAnswer(ctx, r)
	if !ok || err != nil {
		return false, err
	}
	on, err := c.m.runs.Answer(ctx, r.ID, a.interrupt, a.value, row.User, "")
	switch {
	case isHandledElsewhere(err):
		return false, nil
	case err != nil:
		return false, err
	case on == nil:
		return true, nil
	}
	return true, c.awaitRound(ctx, r.ID, on)
}

// firstAnswer returns the message that started a paused round as the answer to its first question; ok is false if it is
// none: the flow has an input for the message, the question has been answered, or the message does not fit.
func (c *driver) firstAnswer(ctx context.Context, r *store.Run) (a answer, ok bool, err error) {
	f, err := c.m.runs.Flow(ctx, r.Fingerprint)
	if err != nil {
		return a, false, err
	}
	if _, ok := MessageInput(f); ok {
		return a, false, nil
	}
	said := &queuedInput{}
	for commit, err := range c.m.store.Commits(ctx, r.ID, 0) {
		if err != nil {
			return a, false, err
		}
		for _, e := range commit.Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				said.message, _ = e.Inputs.Get(messageName)
			case *engine.InterruptAnswered:
				return a, false, nil
			}
		}
	}
	a, err = c.m.answerTo(ctx, &store.Session{ID: c.id}, r, said)
	return a, err == nil, nil
}

// answerRound answers the question of a round with a queued message, and waits for the
// round. The commit that applies the answer also removes the message from the queue, so
// that a crash at any point cannot repeat or lose it.
func (c *driver) answerRound(ctx context.Context, row *store.Session, r *store.Run, q *store.QueuedMessage, a answer) (moved bool, err error) {
	on, err := c.m.runs.Answer(ctx, r.ID, a.interrupt, a.value, answeredBy(q), q.ID)
	t, _ := c.replyTo(q.ID)
	switch {
	case isHandledElsewhere(err):
		return false, nil
	case errors.Is(err, runner.ErrAnswer) && t != nil:
		return true, c.reject(t, err, c.m.store.RefuseQueued(ctx, q.ID, r.ID, r.Commits))
	case err != nil:
		return false, err
	}
	if t != nil {
		t.attach(r.ID, on, row.Length, r.Commits, r.Events)
	}
	if on == nil {
		return true, nil
	}
	result, err := on.Wait(ctx)
	return true, c.completeReply(ctx, t, result, err)
}

// answeredBy names who answered and with which message, for the record.
func answeredBy(q *store.QueuedMessage) string {
	return strings.TrimSpace(q.By + " (message " + q.ID + ")")
}

// completeTakenReplies completes the replies to messages that other processes have taken,
// if their rounds have ended or paused.
func (c *driver) completeTakenReplies(ctx context.Context) (moved bool, err error) {
	turns := make(map[string]*Reply)
	var waits []string
	for _, t := range c.pendingReplies() {
		if turns[t.waits] = t; t.Run() == "" {
			waits = append(waits, t.waits)
		}
	}
	taken, err := c.m.store.NotQueued(ctx, waits)
	if err != nil {
		return false, err
	}
	for _, message := range taken {
		q, err := c.m.store.FindQueued(ctx, message)
		switch {
		case errors.Is(err, store.ErrNotFound): // removed from the queue
			c.m.drivers.complete(turns[message], runner.Result{Status: engine.Cancelled}, nil)
			delete(turns, message)
			moved = true
		case err != nil:
			return moved, err
		case q.TakenBy != "":
			turns[message].attachIfNew(q.TakenBy, c.m.held(q.TakenBy))
		}
	}
	for _, t := range turns {
		if t.Run() == "" {
			continue
		}
		ended, err := c.completeIfAtRest(ctx, t)
		if err != nil {
			return moved, err
		}
		moved = moved || ended
	}
	return moved, nil
}

// completeIfAtRest completes a reply whose round has ended or paused and is not executed
// by this process.
func (c *driver) completeIfAtRest(ctx context.Context, t *Reply) (bool, error) {
	r, err := c.m.store.Run(ctx, t.Run())
	if err != nil {
		return false, err
	}
	if !r.Head.Status.Ended() && r.Head.Status != engine.Paused || c.m.held(r.ID) != nil {
		return false, nil
	}
	if c.m.remote && r.Head.Status == engine.Paused {
		if _, open, err := c.firstAnswer(ctx, &r); open || err != nil {
			return false, err
		}
	}
	v, err := c.m.inspect(ctx, r.ID)
	if err != nil {
		if retryTimeoutFor(err) > 0 {
			return false, err
		}
		c.m.drivers.complete(t, runner.Result{Run: r.ID, Status: r.Head.Status, Interrupts: r.Head.Waiting, Usage: r.Head.Usage, Error: r.Head.Error}, err)
		return true, nil
	}
	return true, c.completeReply(ctx, t, v.Result(), nil)
}

// inspect reads a run from its journal.
func (m *Manager) inspect(ctx context.Context, run string) (*runner.RunView, error) {
	p, err := m.runs.RecordedProgram(ctx, run)
	if err != nil {
		return nil, err
	}
	return m.local.Inspect(ctx, p, run, 0)
}
