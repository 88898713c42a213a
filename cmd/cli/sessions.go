package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

type sessionsOptions struct {
	store.SessionFilter
	label string
	json  bool
}

func (p *cli) sessionsCommand() *cobra.Command {
	o := &sessionsOptions{}
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, name, fork and delete sessions",
		Long: `List sessions, newest first. A session is a conversation with a flow over many runs, its
rounds. It is identified by its user, the name of its flow and its thread. SESSION in the
commands below may be the beginning of an id. "weir chat" sends messages to a session.`,
		Example: `  weir sessions --user ada
  weir sessions show 01kafw --messages
  weir sessions prune --older-than 30d --dry-run`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.sessions(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Flow, "flow", "", "only sessions with the flow of this `NAME`")
	f.StringVar(&o.User, "user", "", "only sessions of this `USER`")
	f.StringVar(&o.label, "label", "", "only sessions with this `LABEL`")
	f.IntVar(&o.Limit, "limit", 20, "list at most this many")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	_ = c.RegisterFlagCompletionFunc("flow", p.completeSessionField(flowNameOf))
	_ = c.RegisterFlagCompletionFunc("user", p.completeSessionField(userOf))
	c.AddCommand(p.showSessionCommand(), p.forkSessionCommand(), p.activateSessionCommand(), p.sessionStateCommand(), p.unqueueCommand(),
		p.renameSessionCommand(), p.labelSessionCommand(), p.sessionBudgetCommand(),
		p.deleteSessionCommand(), p.pruneSessionsCommand(), p.compactCommand())
	return c
}

func (p *cli) sessions(ctx context.Context, o *sessionsOptions) error {
	if o.Limit <= 0 {
		return usagef("--limit: expected at least 1")
	}
	a, err := p.openReadOnly(ctx)
	if errors.Is(err, store.ErrNotFound) {
		if o.json {
			writeJSON(p.out, []app.SessionRow{})
			return nil
		}
		p.notef("no sessions yet: there is no database at %s", p.databaseName())
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // it only read
	list, err := a.listSessions(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		return p.writeSessions(ctx, a, list)
	}
	return p.printSessions(ctx, a, list, "")
}

// printSessions lists sessions; current is marked.
func (p *cli) printSessions(ctx context.Context, a *application, list []store.Session, current string) error {
	if len(list) == 0 {
		p.notef("no sessions")
		return nil
	}
	holders, err := a.holdersOf(ctx, list)
	if err != nil {
		return err
	}
	names, named, err := a.namesOf(ctx, list)
	if err != nil {
		return err
	}
	head := "SESSION USER FLOW THREAD ROUNDS MESSAGES TOKENS LAST NOTE"
	if named {
		head = "SESSION USER FLOW THREAD TITLE LABELS ROUNDS MESSAGES TOKENS LAST NOTE"
	}
	now, t := time.Now(), p.table(head, "TOKENS", "MESSAGES", "THREAD", "LAST")
	for i := range list {
		s := &list[i]
		thread, note := app.Printable(s.Thread), ""
		if s.Thread == s.ID {
			thread = "-"
		}
		switch stands := sessionStatus(s, holders[s.ID]); {
		case s.ID == current:
			note = "this one"
		case stands != "":
			note = stands
		case s.Parent != "":
			note = fmt.Sprintf("forked from %s at %d", s.Parent, s.ParentLength)
		}
		cells := []string{s.ID, textOrDash(app.Printable(s.User)), app.Printable(s.Flow), thread}
		if named {
			cells = append(cells, textOrDash(shorten(names[i].Title, 40)), textOrDash(strings.Join(names[i].Labels, ",")))
		}
		t.row(append(cells, fmt.Sprint(s.Rounds), fmt.Sprint(s.Length), tokens(s.Usage), ago(now.Sub(s.Updated)), note)...)
	}
	t.print()
	return nil
}

func textOrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (p *cli) forkSessionCommand() *cobra.Command {
	at, asJSON := -1, false
	c := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Create a session with the first messages of another",
		Long: `Create a session that begins with the first messages of another; without --at, with all
of them. Nothing is copied, and neither session sees later messages of the other. The
active session of the user stays active; continue the new one with "weir chat
--session ID".`,
		Args:              exactArgs("SESSION"),
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("at") && at < 0 {
				return usagef("--at: expected how many messages the new session begins with, from 0")
			}
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				if at > s.Length {
					return usagef("--at %d: session %s has %s", at, s.ID, count(s.Length, "message"))
				}
				other, err := a.ForkSession(ctx, s.ID, at)
				if err != nil {
					return err
				}
				if asJSON {
					row, err := a.Store.Session(ctx, other)
					if err != nil {
						return err
					}
					return p.writeSession(ctx, a, &row)
				}
				fmt.Fprintln(p.out, other)
				return nil
			})
		},
	}
	c.Flags().IntVar(&at, "at", -1, "begin with the first `N` messages; without it, with all")
	c.Flags().Lookup("at").DefValue = "0" // -1 is internal
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// withSession finds a session by the beginning of its id.
func (p *cli) withSession(ctx context.Context, prefix string, do func(ctx context.Context, a *application, s *store.Session) error) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it wrote is durable
	id, err := a.FindSession(ctx, prefix)
	if err != nil {
		return unknownSession(err)
	}
	s, err := a.Store.Session(ctx, id)
	if err != nil {
		return err
	}
	return do(ctx, a, &s)
}

// unknownSession has a session that is not there be a mistake of the command
// line, with its own hint.
func unknownSession(err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return sessionNotFound(err)
}

// completeSessions offers the newest sessions.
func (p *cli) completeSessions(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 && c.Name() != "delete" {
		return nil, noFiles
	}
	return p.sessionIDs(c), noFiles
}

func (p *cli) sessionIDs(c *cobra.Command) completions {
	a, err := p.openReadOnly(contextOf(c))
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	list, err := a.Sessions(contextOf(c), store.SessionFilter{})
	if err != nil {
		return nil
	}
	var out completions
	for i := range list {
		out = append(out, cobra.CompletionWithDesc(list[i].ID, list[i].Flow+" "+list[i].User))
	}
	return out
}

// completeSessionField offers what newer sessions have of something: users, flows, threads.
func (p *cli) completeSessionField(of func(*store.Session) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (completions, cobra.ShellCompDirective) {
		a, err := p.openReadOnly(contextOf(c))
		if err != nil {
			return nil, noFiles
		}
		defer a.close() //nolint:errcheck // it only read
		list, err := a.Sessions(contextOf(c), store.SessionFilter{})
		if err != nil {
			return nil, noFiles
		}
		return distinct(list, of), noFiles
	}
}

func userOf(s *store.Session) string     { return s.User }
func flowNameOf(s *store.Session) string { return s.Flow }

// threadOf returns a session's thread, "" for one that has its id as its thread.
func threadOf(s *store.Session) string {
	if s.Thread == s.ID {
		return ""
	}
	return s.Thread
}
