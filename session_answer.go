package weir

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/token"
)

// paused answers the question that the round waits for with the first message
// that fits it.
func (c *conductor) paused(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	if moved, err = c.settle(ctx); moved || err != nil {
		return moved, err
	}
	if moved, err = c.reopen(ctx, row, r); moved || err != nil {
		return moved, err
	}
	list, err := c.w.store.Queue(ctx, c.id)
	if err != nil {
		return false, err
	}
	for i := range list {
		q := &list[i]
		t, _ := c.turn(q.ID)
		if t == nil || t.again {
			if known, err := c.w.sentBefore(ctx, row, q); known || err != nil {
				return true, err
			}
		}
		a, err := c.w.answerTo(ctx, row, r, spokenOf(q.Value))
		if err == nil {
			return true, c.answer(ctx, row, r, q, a)
		}
		if t != nil {
			c.refuse(ctx, t, err)
		}
	}
	return false, nil
}

// reopen is open for a round whose process died before it had answered.
func (c *conductor) reopen(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	f, err := c.w.FlowUnder(ctx, r.Fingerprint)
	if err != nil {
		return false, err
	}
	if _, ok := messageInput(f); ok {
		return false, nil
	}
	var said *spoken
	for commit, err := range c.w.store.Commits(ctx, r.ID, 0) {
		if err != nil {
			return false, err
		}
		for _, e := range commit.Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				v, _ := e.Inputs.Get(messageName)
				said = &spoken{message: v}
			case *engine.InterruptAnswered:
				return false, nil
			}
		}
	}
	a, err := c.w.answerTo(ctx, row, r, said)
	if err != nil {
		return false, nil
	}
	on, err := c.w.Answer(ctx, r.ID, a.interrupt, a.value, row.User)
	if elsewhere(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return true, c.follow(ctx, r.ID, on.execution())
}

// answer answers the round's question with a message, and sees the round
// through. The answer says which message it is, so that a crash before that is
// noted does not say it twice.
func (c *conductor) answer(ctx context.Context, row *store.Session, r *store.Run, q *store.Queued, a answer) error {
	on, err := c.w.Answer(ctx, r.ID, a.interrupt, a.value, saidBy(q))
	switch {
	case elsewhere(err):
		return nil
	case err != nil:
		return err
	}
	t, _ := c.turn(q.ID)
	if t != nil { // first, since what is in the journal is not to be taken back
		t.attach(r.ID, on.execution(), row.Length, r.Commits, r.Events)
	}
	if err := c.w.store.TakeQueued(ctx, q.ID, r.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	result, err := on.Wait(ctx)
	return c.ended(ctx, t, result, err)
}

// saidBy is who answered, and with which message.
func saidBy(q *store.Queued) string { return strings.TrimSpace(q.By + " (message " + q.ID + ")") }

// sentBefore reports whether a message has answered a question of a round that has
// done something since the message was sent; it is then out of the queue. That need
// not be the newest: messages that came before it may have had rounds since.
func (w *Weir) sentBefore(ctx context.Context, row *store.Session, q *store.Queued) (bool, error) {
	for before := ""; ; {
		rounds, err := w.store.Runs(ctx, store.Filter{Session: row.ID, Before: before, Limit: fewRounds})
		if err != nil {
			return false, err
		}
		for i := range rounds {
			r := &rounds[i]
			if r.Updated.Before(q.At.Truncate(time.Millisecond)) {
				return false, nil
			}
			answered, err := w.answered(ctx, r.ID, q.ID)
			if err != nil {
				return false, err
			}
			if answered {
				err = w.store.TakeQueued(ctx, q.ID, r.ID)
				if errors.Is(err, store.ErrNotFound) {
					err = nil
				}
				return true, err
			}
			before = r.ID
		}
		if len(rounds) < fewRounds {
			return false, nil
		}
	}
}

// fewRounds is how many rounds are listed at a time, where the first mostly tells.
const fewRounds = 4

// answered reports whether a question of a run was answered with a message.
func (w *Weir) answered(ctx context.Context, run, message string) (bool, error) {
	mark := saidBy(&store.Queued{ID: message})
	for c, err := range w.store.Commits(ctx, run, 0) {
		if err != nil {
			return false, err
		}
		for _, e := range c.Events {
			if a, ok := e.(*engine.InterruptAnswered); ok && strings.HasSuffix(a.By, mark) {
				return true, nil
			}
		}
	}
	return false, nil
}

// settle ends the turns whose messages others have taken, as far as their rounds
// have come.
func (c *conductor) settle(ctx context.Context) (moved bool, err error) {
	list, err := c.w.store.Queue(ctx, c.id)
	if err != nil {
		return false, err
	}
	queued := make(map[string]bool, len(list))
	for i := range list {
		queued[list[i].ID] = true
	}
	for _, t := range c.waiting() {
		if queued[t.Message] {
			continue
		}
		q, err := c.w.store.FindQueued(ctx, t.Message)
		if errors.Is(err, store.ErrNotFound) { // taken back
			c.w.talks.resolve(t, Result{Status: engine.Cancelled}, nil)
			continue
		}
		if err != nil {
			return moved, err
		}
		if q.Run == "" { // sent a moment ago
			continue
		}
		r, err := c.w.store.Run(ctx, q.Run)
		if err != nil {
			return moved, err
		}
		if !r.Head.Status.Ended() && r.Head.Status != engine.Paused || c.w.local.Held(q.Run) != nil {
			continue
		}
		moved = true
		if err := c.settled(ctx, t, &r); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// settled ends a turn whose round another process has driven.
func (c *conductor) settled(ctx context.Context, t *Turn, r *store.Run) error {
	v, err := c.w.Inspect(ctx, r.ID, 0)
	if err != nil {
		return err
	}
	if t.Run() == "" {
		t.attach(r.ID, nil, 0, 0, 0)
	}
	return c.ended(ctx, t, Result{
		Run: r.ID, Status: v.Run.Status(), Outputs: v.Run.Outputs(), Interrupts: v.Run.Interrupts(),
		Usage: v.Run.Usage(), Error: v.Run.Failure(),
	}, nil)
}

// counterOf counts tokens as the model of the settings does.
func (w *Weir) counterOf(s convo.Settings) (convo.Counter, error) {
	m, _ := w.models.Find(s.Provider, s.Model)
	c, err := token.For(m.Encoding, w.models.Vendor(s.Provider))
	if err != nil {
		return nil, fmt.Errorf("count tokens of %s: %w", s.Model, err)
	}
	return c, nil
}
