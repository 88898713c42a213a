package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
)

// chatCommand is a line that is no message.
type chatCommand struct {
	name, argument, what string
	do                   func(c *chat, ctx context.Context, argument string) error
}

// chatCommands returns what /help lists. Quitting is done by who reads the line.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"help", "", "list these commands", func(c *chat, _ context.Context, _ string) error { c.help(); return nil }},
		{"show", "[N]", "the session and its last round; the last N messages", (*chat).showCommand},
		{"history", "[N]", "the last N messages (default 20)", (*chat).historyCommand},
		{"tokens", "", "what the session and its last round have used", (*chat).tokensCommand},
		{"fork", "[N]", "continue in a new session that begins with the first N messages, or all", (*chat).forkCommand},
		{"edit", "N TEXT", "continue in a fork that has TEXT in the place of message N", (*chat).editCommand},
		{"regenerate", "[N]", "answer message N, or the last one, again in a fork", (*chat).regenerateCommand},
		{"new", "", "continue in a new session", (*chat).newCommand},
		{"sessions", "", "the sessions with this flow", (*chat).sessionsCommand},
		{"session", "ID", "continue in another session", (*chat).switchCommand},
		{"quit", "", "end the chat; the session stays", nil},
	}
}

// command carries out a line that begins with a /.
func (c *chat) command(ctx context.Context, line string) (quit bool, err error) {
	name, argument, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	if name == "exit" || name == "q" {
		name = "quit"
	}
	var names []string
	for _, k := range chatCommands() {
		names = append(names, k.name)
		if k.name != name {
			continue
		}
		if k.do == nil {
			return true, nil
		}
		return false, c.reportError(ctx, k.do(c, ctx, strings.TrimSpace(argument)))
	}
	return false, c.reportError(ctx, usagef("there is no command /%s%s; /help lists them, and // says a line that begins with /", name, didYouMean(name, names)))
}

func (c *chat) help() {
	t := c.p.table("")
	t.out = c.p.err
	for _, k := range chatCommands() {
		t.row(strings.TrimSpace("/"+k.name+" "+k.argument), k.what)
	}
	t.print()
	c.p.notef("A line that ends with \\ continues on the next line. Ctrl-C cancels the round; twice at the prompt it quits.")
}

// history returns the person's messages of the session, for the editor.
func (c *chat) history(ctx context.Context) []string {
	var out []string
	for _, m := range c.lastMessages(ctx, 200) {
		if m.Message.Role == convo.User {
			out = append(out, strings.ReplaceAll(m.Message.Text, "\n", " "))
		}
	}
	return out
}

// lastMessages returns the session's newest messages, at most n.
func (c *chat) lastMessages(ctx context.Context, n int) []store.SessionMessage {
	row, err := c.session.Info(ctx)
	if err != nil {
		return nil
	}
	list, err := c.session.Messages(ctx, max(row.Length-n, 0), row.Length)
	if err != nil {
		return nil
	}
	return list
}

// messagesOnEntry is how many of the newest messages a chat begins with.
const messagesOnEntry = 6

// printHistory says which session it is, and what was said last.
func (c *chat) printHistory(ctx context.Context) {
	c.refreshInterrupts(ctx)
	if !c.lines.interactive() {
		return
	}
	st := c.p.style()
	row, err := c.session.Info(ctx)
	if err != nil {
		return
	}
	line := "a new session"
	if row.Length > 0 {
		line = fmt.Sprintf("%s, %s so far", count(row.Rounds, "round"), count(row.Length, "message"))
	}
	c.p.notef("%s  %s", st.bold.Render(app.Printable(row.Flow)), st.dim.Render(c.session.ID+", "+line+"; /help lists the commands"))
	if row.Length > messagesOnEntry {
		c.p.notef("%s", st.dim.Render(fmt.Sprintf("… %s before; /history %d shows them", count(row.Length-messagesOnEntry, "message"), row.Length)))
	}
	for _, m := range c.lastMessages(ctx, messagesOnEntry) {
		c.p.printEntry(&m.Message, "")
	}
}

func (c *chat) showCommand(ctx context.Context, argument string) error {
	if argument != "" {
		return c.historyCommand(ctx, argument)
	}
	row, err := c.session.Info(ctx)
	if err != nil {
		return err
	}
	if c.p.json {
		return c.p.writeSession(ctx, c.app, &row)
	}
	if err := c.p.printSession(ctx, c.app, &row); err != nil {
		return err
	}
	rounds, err := c.session.Rounds(ctx, "", 1)
	if err != nil || len(rounds) == 0 {
		return err
	}
	v, err := c.app.Inspect(ctx, rounds[0].ID, 0)
	if err == nil && v.Run.Start != nil {
		fmt.Fprintln(c.p.out)
		c.p.printRun(v, "", false, defaultRows)
	}
	return err
}

func (c *chat) historyCommand(ctx context.Context, argument string) error {
	n, err := parseNumberOr(argument, 20)
	if err != nil {
		return err
	}
	list := c.lastMessages(ctx, n)
	if c.p.json {
		writeJSON(c.p.out, app.MessageRows(list))
		return nil
	}
	c.p.printMessages(list)
	return nil
}

// parseNumberOr reads a number from 0, or takes one where none is given.
func parseNumberOr(text string, n int) (int, error) {
	if text == "" {
		return n, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, usagef("expected a number from 0, not %q", text)
	}
	return n, nil
}

func (c *chat) tokensCommand(ctx context.Context, _ string) error {
	row, err := c.session.Info(ctx)
	if err != nil {
		return err
	}
	if c.p.json {
		writeJSON(c.p.out, map[string]any{"session": c.session.ID, "usage": app.UsageOf(row.Usage), "messages": row.Length})
		return nil
	}
	fmt.Fprintf(c.p.out, "session: %s, %s, %s\n", count(row.Length, "message"), count(row.Usage.Calls, "model call"), usageText(row.Usage))
	if last := c.view.last; last != nil {
		fmt.Fprintf(c.p.out, "last turn: %s\n", usageText(last.Spent))
		fmt.Fprintf(c.p.out, "its last model call was sent %d tokens%s\n", last.SentTokens, omittedFromView(last.View, last.Omitted))
	}
	return nil
}

// omittedFromView says what of the history a model was not given.
func omittedFromView(v *convo.Manifest, earlier int) string {
	switch {
	case v == nil && earlier > 0:
		return fmt.Sprintf(", all of the history after its first %s among them", count(earlier, "message"))
	case v == nil:
		return ", all of the history among them"
	}
	s := fmt.Sprintf(": %d of the history's %s, %d tokens of %d", v.To-v.Omitted-earlier, count(v.To, "message"), v.Tokens, v.Room)
	if v.Summary != nil {
		s += fmt.Sprintf(", a summary of %d to %d", v.Summary[0], v.Summary[1])
	}
	if v.Cleared > 0 {
		s += ", " + count(v.Cleared, "tool result") + " without text"
	}
	return s
}

func (c *chat) forkCommand(ctx context.Context, argument string) error {
	at, err := parseNumberOr(argument, -1)
	if err != nil {
		return err
	}
	other, err := c.session.Fork(ctx, at)
	if err != nil {
		return err
	}
	return c.switchTo(ctx, other, "forked from "+c.session.ID)
}

func (c *chat) newCommand(ctx context.Context, _ string) error {
	f := c.flow
	if f == nil {
		rounds, err := c.session.Rounds(ctx, "", 1)
		if err != nil || len(rounds) == 0 {
			return err
		}
		if f, err = c.app.FlowByFingerprint(ctx, rounds[0].Fingerprint); err != nil {
			return err
		}
	}
	other, err := c.app.Session(ctx, f, weir.SessionOptions{User: c.session.User, New: true})
	if err != nil {
		return err
	}
	return c.switchTo(ctx, other, "a new session")
}

func (c *chat) sessionsCommand(ctx context.Context, _ string) error {
	list, err := c.app.Sessions(ctx, store.SessionFilter{User: c.session.User, Flow: c.session.Flow, Limit: 20})
	if err != nil {
		return err
	}
	if c.p.json {
		return c.p.writeSessions(ctx, c.app, list)
	}
	return c.p.printSessions(ctx, c.app, list, c.session.ID)
}

// sessionIDs returns the sessions of the user with this flow, the newest first.
func (c *chat) sessionIDs(ctx context.Context) []string {
	list, err := c.app.Sessions(ctx, store.SessionFilter{User: c.session.User, Flow: c.session.Flow})
	if err != nil {
		return nil
	}
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

func (c *chat) switchCommand(ctx context.Context, argument string) error {
	if argument == "" {
		return usagef("expected the id of a session; /sessions lists them")
	}
	id, err := c.app.FindSession(ctx, argument)
	if err != nil {
		return unknownSession(err)
	}
	other, err := c.app.Session(ctx, c.flow, weir.SessionOptions{ID: id})
	if err != nil {
		return err
	}
	return c.switchTo(ctx, other, "")
}

// switchTo continues in another session.
func (c *chat) switchTo(ctx context.Context, s *weir.Session, why string) error {
	c.session, c.view.last = s, nil
	c.refreshInterrupts(ctx)
	row, err := s.Info(ctx)
	if err != nil {
		return err
	}
	if c.p.json {
		return c.p.writeSession(ctx, c.app, &row)
	}
	if why != "" {
		why = ", " + why
	}
	c.p.notef("%s", c.p.style().dim.Render(fmt.Sprintf("session %s%s, %s", s.ID, why, count(row.Length, "message"))))
	c.printQuestion()
	return nil
}
