package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// What was sent and has had no turn, as where the chat died that sent it, has its
// turn before what is said next. A chat says so as it begins, and sees it through.

// leftOver notes what was sent before and has had no turn.
func (c *chat) leftOver(ctx context.Context) error {
	row, err := c.s.Info(ctx)
	if err != nil {
		return err
	}
	c.left = nil
	if row.Holder != "" && len(c.waits) == 0 { // a round that was begun and has not ended
		r, err := c.desk.store.Run(ctx, row.Holder)
		if err != nil {
			return err
		}
		if r.Owner != "" && time.Now().Before(r.Until) && !runner.OwnerGone(r.Owner) {
			c.note("round %d runs in another process, %s; messages sent here wait for its end", row.Rounds, runner.OwnerName(r.Owner))
			return nil
		}
		q, err := c.desk.store.RoundMessage(ctx, row.Holder)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil && q.ID != "" {
			c.left = append(c.left, weir.Waiting{ID: q.ID, By: q.By, At: q.At})
		}
	}
	list, err := c.s.Waiting(ctx)
	c.left = append(c.left, list...)
	return err
}

// goOnWithLeft sees through what was sent before, unless a question is open.
func (c *chat) goOnWithLeft(ctx context.Context) error {
	for len(c.left) > 0 && len(c.waits) == 0 {
		next := c.left[0]
		c.left = c.left[1:]
		c.note("%s", leftLine(&next))
		o := c.send
		o.ID = next.ID
		turn, err := c.s.Send(ctx, next.Message, o)
		if err == nil {
			err = c.see(ctx, turn)
		}
		if err := c.told(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// leftLine says which message has its turn now.
func leftLine(w *weir.Waiting) string {
	when := ago(time.Since(w.At))
	if w.By != "" {
		when = "by " + printable(w.By) + ", " + when
	}
	if w.Message == nil {
		return fmt.Sprintf("continuing the round that was started %s", when)
	}
	return fmt.Sprintf("now answering the message sent %s: %s", when, shorten(node.TextOf(w.Message), 200))
}

// note says something dimly on stderr, in a chat that does not print JSON.
func (c *chat) note(format string, args ...any) {
	if !c.p.json {
		c.p.say("%s", c.p.style().dim.Render(fmt.Sprintf(format, args...)))
	}
}

// sayLeft says, as the chat begins, what waits from before.
func (c *chat) sayLeft() {
	n := len(c.left)
	if n == 0 {
		return
	}
	if len(c.waits) > 0 {
		c.note("%s from before, behind the question; `%s` lists them", waiting(n), c.p.self("sessions", "show", c.s.ID))
		return
	}
	c.note("%s from before, and %s", waiting(n), map[bool]string{true: "is answered first", false: "are answered first"}[n == 1])
}

// waiting is "1 message waits" or "2 messages wait".
func waiting(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}
