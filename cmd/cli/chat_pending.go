package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// What was sent and has had no turn, as where the chat died that sent it, has its
// turn before what is said next. A chat says so as it begins, and sees it through.

// loadPending notes what was sent before and has had no turn.
func (c *chat) loadPending(ctx context.Context) error {
	row, err := c.session.Info(ctx)
	if err != nil {
		return err
	}
	c.pending = nil
	if row.Holder != "" && len(c.interrupts) == 0 { // a round that was begun and has not ended
		r, err := c.app.Store.Run(ctx, row.Holder)
		if err != nil {
			return err
		}
		if r.Owner != "" && !r.Expired && !runner.OwnerDead(r.Owner) {
			c.note("round %d runs in another process, %s; messages sent here wait for its end", row.Rounds, runner.OwnerName(r.Owner))
			return nil
		}
		q, err := c.app.Store.RoundMessage(ctx, row.Holder)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil && q.ID != "" {
			c.pending = append(c.pending, session.QueuedMessage{ID: q.ID, By: q.By, At: q.At})
		}
	}
	list, err := c.session.QueuedMessages(ctx)
	c.pending = append(c.pending, list...)
	return err
}

// answerPending sees through what was sent before, unless a question is open.
func (c *chat) answerPending(ctx context.Context) error {
	for len(c.pending) > 0 && len(c.interrupts) == 0 {
		next := c.pending[0]
		c.pending = c.pending[1:]
		c.note("%s", pendingLine(&next))
		turn, err := c.session.ReplyTo(ctx, session.ReplyStart{Message: next.ID}, c.send.By)
		if err == nil {
			err = c.showReply(ctx, turn)
		}
		if err := c.reportError(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// pendingLine says which message has its turn now.
func pendingLine(w *session.QueuedMessage) string {
	when := ago(time.Since(w.At))
	if w.By != "" {
		when = "by " + app.Printable(w.By) + ", " + when
	}
	if w.Message == nil {
		return fmt.Sprintf("continuing the round that was started %s", when)
	}
	return fmt.Sprintf("now answering the message sent %s: %s", when, shorten(node.TextOf(w.Message), 200))
}

// note says something dimly on stderr, in a chat that does not print JSON.
func (c *chat) note(format string, args ...any) {
	if !c.p.json {
		c.p.notef("%s", c.p.style().dim.Render(fmt.Sprintf(format, args...)))
	}
}

// notePending says, as the chat begins, what waits from before.
func (c *chat) notePending() {
	n := len(c.pending)
	if n == 0 {
		return
	}
	if len(c.interrupts) > 0 {
		c.note("%s from before, behind the question; `%s` lists them", messagesWait(n), c.p.commandLine("sessions", "show", c.session.ID))
		return
	}
	c.note("%s from before, and %s", messagesWait(n), map[bool]string{true: "is answered first", false: "are answered first"}[n == 1])
}

// messagesWait is "1 message waits" or "2 messages wait".
func messagesWait(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}
