package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// printQueued is what waits, for people, the next first.
func (p *cli) printQueued(list []session.QueuedMessage) {
	now, t := time.Now(), p.table("WAITING BY SENT MESSAGE")
	for _, w := range list {
		t.row(app.Printable(w.ID), textOrDash(app.Printable(w.By)), ago(now.Sub(w.At)), shorten(node.TextOf(w.Message), 60))
	}
	t.print()
}

func (p *cli) unqueueCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "unqueue MESSAGE...",
		Short: "Remove waiting messages from the queue",
		Long: `Remove messages from the queue of a session that no round has taken, for example a
message that no flow can take any more and that blocks those behind it. MESSAGE is the id;
"weir sessions show SESSION" lists waiting messages. If a round has taken the message,
cancel the round with "weir cancel RUN".`,
		Example:           `  weir sessions unqueue 01kafwm1`,
		Args:              atLeastOneMessage,
		ValidArgsFunction: p.completeQueued,
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.openReadOnly(c.Context())
			if err != nil {
				return err
			}
			defer a.close() //nolint:errcheck // what it did is durable
			return p.unqueue(c.Context(), a, args, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per message")
	return c
}

func atLeastOneMessage(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("expected MESSAGE; see `weir sessions unqueue --help`")
	}
	return nil
}

func (p *cli) unqueue(ctx context.Context, a *application, messages []string, asJSON bool) error {
	for _, id := range messages {
		session, err := a.Unqueue(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return usagef("no message %s is waiting; `weir sessions show SESSION` lists waiting messages", id)
		}
		if err != nil {
			return err
		}
		if asJSON {
			writeJSON(p.out, map[string]any{"message": id, "session": session})
			continue
		}
		fmt.Fprintf(p.out, "took back message %s of session %s\n", app.Printable(id), session)
	}
	return nil
}

// completeQueued offers the messages that wait.
func (p *cli) completeQueued(c *cobra.Command, _ []string, _ string) (completions, cobra.ShellCompDirective) {
	ctx := contextOf(c)
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return nil, noFiles
	}
	defer a.close() //nolint:errcheck // it only read
	list, err := a.Sessions(ctx, store.SessionFilter{})
	if err != nil {
		return nil, noFiles
	}
	var out completions
	for i := range list {
		if list[i].Queued == 0 {
			continue
		}
		waiting, err := a.QueuedMessages(ctx, list[i].ID)
		if err != nil {
			return out, noFiles
		}
		for _, w := range waiting {
			out = append(out, cobra.CompletionWithDesc(w.ID, shorten(node.TextOf(w.Message), 40)))
		}
	}
	return out, noFiles
}
