package weir

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/token"
)

// answerPausedRound answers the question that the round waits for with the first message
// that fits it.
func (c *sessionDriver) answerPausedRound(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	if moved, err = c.reanswerFirstQuestion(ctx, row, r); moved || err != nil {
		return moved, err
	}
	if moved, err = c.completeTakenReplies(ctx); moved || err != nil {
		return moved, err
	}
	list, err := c.w.store.Queue(ctx, c.id)
	if err != nil {
		return false, err
	}
	for i := range list {
		q := &list[i]
		a, err := c.w.answerTo(ctx, row, r, decodeQueuedInput(q.Value))
		if err == nil {
			return c.answerRound(ctx, row, r, q, a)
		}
		// The round may have moved on since it was read: then the message may fit.
		t, _ := c.replyTo(q.ID)
		if t != nil && t.recovered {
			c.w.drivers.complete(t, Result{}, &StalledError{Session: c.id, Err: err})
		} else if t != nil {
			if err := c.reject(t, err, c.w.store.RefuseQueued(ctx, q.ID, r.ID, r.Commits)); err != nil {
				return moved, err
			}
			moved = true
		}
	}
	return moved, nil
}

// reanswerFirstQuestion is open for a round whose process died before it had answered.
func (c *sessionDriver) reanswerFirstQuestion(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	f, err := c.w.FlowByFingerprint(ctx, r.Fingerprint)
	if err != nil {
		return false, err
	}
	if _, ok := messageInput(f); ok {
		return false, nil
	}
	var said *queuedInput
	for commit, err := range c.w.store.Commits(ctx, r.ID, 0) {
		if err != nil {
			return false, err
		}
		for _, e := range commit.Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				v, _ := e.Inputs.Get(messageName)
				said = &queuedInput{message: v}
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
	if isHandledElsewhere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, c.awaitRound(ctx, r.ID, on.execution())
}

// answerRound answers the round's question with a message, and sees the round through.
// The commit that answers takes the message out of the queue, so that it is given
// once wherever a process dies.
func (c *sessionDriver) answerRound(ctx context.Context, row *store.Session, r *store.Run, q *store.QueuedMessage, a answer) (moved bool, err error) {
	on, err := c.w.do(ctx, r.ID, runner.AnswerQueued(a.interrupt, a.value, answeredBy(q), q.ID))
	t, _ := c.replyTo(q.ID)
	switch {
	case isHandledElsewhere(err):
		return false, nil
	case errors.Is(err, runner.ErrAnswer) && t != nil:
		return true, c.reject(t, err, c.w.store.RefuseQueued(ctx, q.ID, r.ID, r.Commits))
	case err != nil:
		return false, err
	}
	if t != nil {
		t.attach(r.ID, on.execution(), row.Length, r.Commits, r.Events)
	}
	result, err := on.Wait(ctx)
	return true, c.completeReply(ctx, t, result, err)
}

// answeredBy is who answered, and with which message.
func answeredBy(q *store.QueuedMessage) string {
	return strings.TrimSpace(q.By + " (message " + q.ID + ")")
}

// completeTakenReplies ends the turns whose messages others have taken, as far as their rounds
// have come.
func (c *sessionDriver) completeTakenReplies(ctx context.Context) (moved bool, err error) {
	turns := make(map[string]*Reply)
	var waits []string
	for _, t := range c.pendingReplies() {
		if turns[t.Message] = t; t.Run() == "" {
			waits = append(waits, t.Message)
		}
	}
	taken, err := c.w.store.NotQueued(ctx, waits)
	if err != nil {
		return false, err
	}
	for _, message := range taken {
		q, err := c.w.store.FindQueued(ctx, message)
		switch {
		case errors.Is(err, store.ErrNotFound): // taken back
			c.w.drivers.complete(turns[message], Result{Status: engine.Cancelled}, nil)
			delete(turns, message)
			moved = true
		case err != nil:
			return moved, err
		case q.TakenBy != "":
			turns[message].attachIfNew(q.TakenBy, c.w.local.Held(q.TakenBy))
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

// completeIfAtRest ends a turn whose round rests and is not driven here.
func (c *sessionDriver) completeIfAtRest(ctx context.Context, t *Reply) (bool, error) {
	r, err := c.w.store.Run(ctx, t.Run())
	if err != nil {
		return false, err
	}
	if !r.Head.Status.Ended() && r.Head.Status != engine.Paused || c.w.local.Held(r.ID) != nil {
		return false, nil
	}
	v, err := c.w.Inspect(ctx, r.ID, 0)
	if err != nil {
		if retryTimeoutFor(err) > 0 {
			return false, err
		}
		c.w.drivers.complete(t, Result{Run: r.ID, Status: r.Head.Status, Interrupts: r.Head.Waiting, Usage: r.Head.Usage, Error: r.Head.Error}, err)
		return true, nil
	}
	return true, c.completeReply(ctx, t, Result{
		Run: r.ID, Status: v.Run.Status(), Outputs: v.Run.Outputs(), Interrupts: v.Run.Interrupts(),
		Usage: v.Run.Usage(), Error: v.Run.Failure(),
	}, nil)
}

// counterOf counts tokens as the model of the settings does.
func (w *Weir) counterOf(s convo.Settings) (convo.Counter, error) {
	m, _ := w.models.Find(s.Provider, s.Model)
	c, err := token.NewCounter(m.Encoding, w.models.Vendor(s.Provider))
	if err != nil {
		return nil, fmt.Errorf("count tokens of %s: %w", s.Model, err)
	}
	return c, nil
}
