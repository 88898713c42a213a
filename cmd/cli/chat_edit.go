package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/weir-run/weir"
)

// lastMessage is the position that stands for the last message of the person.
const lastMessage = "last"

// editCommand sends another text in the place of a message.
func (c *chat) editCommand(ctx context.Context, argument string) error {
	number, text, _ := strings.Cut(argument, " ")
	at, err := strconv.Atoi(number)
	if text = strings.TrimSpace(text); err != nil || at < 0 || text == "" {
		return usagef("expected the number of a message, from 0, and the text that takes its place; the history shows the numbers")
	}
	return c.continueInFork(ctx, "edited message "+number, func() (*weir.Reply, error) {
		return c.session.Edit(ctx, at, text, c.send)
	})
}

// regenerateCommand asks again for the answer to a message.
func (c *chat) regenerateCommand(ctx context.Context, argument string) error {
	at, err := messagePosition(argument)
	if err != nil {
		return err
	}
	return c.continueInFork(ctx, "answered again", func() (*weir.Reply, error) {
		return c.session.Regenerate(ctx, at, c.send)
	})
}

// messagePosition reads the number of a message, -1 for the last of the person.
func messagePosition(text string) (int, error) {
	if text == "" || text == lastMessage {
		return -1, nil
	}
	at, err := strconv.Atoi(text)
	if err != nil || at < 0 {
		return 0, usagef("expected the number of a message, from 0, or %s, not %q", lastMessage, text)
	}
	return at, nil
}

// continueInFork shows the reply in the fork that the message was sent to, and stays there.
func (c *chat) continueInFork(ctx context.Context, why string, send func() (*weir.Reply, error)) error {
	reply, err := send()
	if err != nil {
		return err
	}
	from := c.session.ID
	c.session = reply.Session
	if !c.p.json {
		c.p.notef("%s", c.p.style().dim.Render("session "+c.session.ID+", forked from "+from+": "+why))
	}
	return c.showReply(ctx, reply)
}
