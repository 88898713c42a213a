package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// sessionReport is a session as `weir sessions show --json` prints it.
type sessionReport struct {
	app.SessionRow
	Runs    []app.RunRow     `json:"runs"`
	Waiting []app.QueuedRow  `json:"waiting"` // the next first
	State   []stateRow       `json:"state"`
	CutOff  []cutOffRow      `json:"cutOff"` // of the runs shown
	History []app.MessageRow `json:"history,omitempty"`
}

type showSessionOptions struct {
	messages bool
	from, to int
	json     bool
}

func (p *cli) showSessionCommand() *cobra.Command {
	o := &showSessionOptions{}
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the rounds and messages of a session",
		Long: `Show a session: its newest rounds, its waiting messages and its state. With --messages, print the
whole history, including messages that models do not receive any more. Positions count
from 0; the position of --to is not included. Messages of failed and cancelled rounds are
marked. Answers that were cut off when a round was cancelled are shown with it, and are not
part of the history.`,
		Example: `  weir sessions show 01kafw --messages
  weir sessions show 01kafw --messages --from 100 --to 120 --json`,
		Args:              exactArgs("SESSION"),
		ValidArgsFunction: p.completeSessions,
	}
	f := c.Flags()
	f.BoolVar(&o.messages, "messages", false, "print the history")
	f.IntVar(&o.from, "from", 0, "with --messages: start at this `POSITION`")
	f.IntVar(&o.to, "to", 0, "with --messages: end before this `POSITION`")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.from < 0 || o.to < 0 {
			return usagef("--from and --to: positions count from 0")
		}
		if c.Flags().Changed("from") || c.Flags().Changed("to") {
			o.messages = true
		}
		whole := !c.Flags().Changed("to")
		return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
			if whole {
				o.to = s.Length
			}
			if o.messages && o.from >= o.to && o.from > 0 {
				return usagef("--from %d: no messages before position %d; the session has %s", o.from, o.to, count(s.Length, "message"))
			}
			return p.showSession(ctx, a, s, o)
		})
	}
	return c
}

func (p *cli) showSession(ctx context.Context, a *application, s *store.Session, o *showSessionOptions) error {
	rounds, err := a.Runs(ctx, store.Filter{Session: s.ID, Limit: 20})
	if err != nil {
		return err
	}
	waiting, err := a.QueuedMessages(ctx, s.ID)
	if err != nil {
		return err
	}
	state, err := a.SessionState(ctx, s.ID)
	if err != nil {
		return err
	}
	var said []store.SessionMessage
	if o.messages {
		if said, err = a.Store.SessionMessages(ctx, s.ID, o.from, o.to); err != nil {
			return err
		}
	}
	cut, err := cutOffsOf(ctx, a, rounds)
	if err != nil {
		return err
	}
	if o.json {
		shown := sessionReport{Runs: []app.RunRow{}, Waiting: app.QueuedRows(waiting), State: stateRows(state), CutOff: cut}
		if shown.SessionRow, err = a.SessionRow(ctx, s); err != nil {
			return err
		}
		for i := range rounds {
			shown.Runs = append(shown.Runs, app.RunRowOf(&rounds[i]))
		}
		if o.messages {
			shown.History = app.MessageRows(said)
		}
		writeJSON(p.out, shown)
		return nil
	}
	if err := p.printSession(ctx, a, s); err != nil {
		return err
	}
	if o.messages {
		fmt.Fprintln(p.out)
		p.printMessages(said)
	} else if len(rounds) > 0 {
		fmt.Fprintln(p.out)
		p.printRounds(rounds)
	}
	p.printCutOffs(cut)
	p.printWaitingAndState(waiting, state)
	if s.Rounds > 0 && (s.Holder != "" || len(waiting) > 0) {
		p.notef("continue with: %s", p.commandLine("chat", "--session", s.ID))
	}
	return nil
}

func (p *cli) printWaitingAndState(waiting []session.QueuedMessage, state []store.StateValue) {
	if len(waiting) > 0 {
		fmt.Fprintln(p.out)
		p.printQueued(waiting)
	}
	if len(state) > 0 {
		fmt.Fprintln(p.out)
		p.printState(state)
	}
}

// printSession returns a session for people, in a few lines.
func (p *cli) printSession(ctx context.Context, a *application, s *store.Session) error {
	holders, err := a.holdersOf(ctx, []store.Session{*s})
	if err != nil {
		return err
	}
	st := p.styleFor(p.out)
	fmt.Fprintf(p.out, "%s  %s", st.bold.Render(s.ID), app.Printable(s.Flow))
	if s.User != "" {
		fmt.Fprintf(p.out, "  user %s", app.Printable(s.User))
	}
	if s.Thread != s.ID {
		fmt.Fprintf(p.out, "  thread %s", app.Printable(s.Thread))
	}
	fmt.Fprintln(p.out)
	line := fmt.Sprintf("begun %s, %s, %s", s.Created.Format("2006-01-02 15:04:05"), count(s.Rounds, "round"), count(s.Length, "message"))
	if u := s.Usage; u.Calls > 0 {
		line += fmt.Sprintf(", %s, %s", count(u.Calls, "model call"), usageText(u))
	}
	if !s.Expires.IsZero() {
		line += ", expires " + s.Expires.Format("2006-01-02 15:04")
	}
	p.printf("%s", st.dim.Render(line))
	if err := p.printNames(ctx, a, s.ID); err != nil {
		return err
	}
	if s.Parent != "" {
		fmt.Fprintln(p.out, st.dim.Render(fmt.Sprintf("forked from %s at message %d, after its round %d", s.Parent, s.ParentLength, s.ParentRound)))
	}
	if stands := sessionStatus(s, holders[s.ID]); stands != "" {
		if s.Holder != "" {
			stands += "  " + st.dim.Render("run "+s.Holder)
		}
		fmt.Fprintln(p.out, st.ask.Render("now")+"  "+stands)
	}
	return nil
}

// cutOffRow is an answer that was cut off, as `weir sessions show --json` prints it.
type cutOffRow struct {
	Run   string `json:"run"`
	Round int    `json:"round"`
	history.CutOff
}

// cutOffsOf returns the answers that were cut off in cancelled rounds, oldest first.
func cutOffsOf(ctx context.Context, a *application, rounds []store.Run) ([]cutOffRow, error) {
	rows := []cutOffRow{}
	for i := len(rounds) - 1; i >= 0; i-- {
		r := &rounds[i]
		if r.Head.Status != engine.Cancelled {
			continue
		}
		v, err := a.Inspect(ctx, r.ID, 0)
		if err != nil {
			return nil, err
		}
		for _, c := range history.CutOffs(v) {
			rows = append(rows, cutOffRow{r.ID, r.Round, c})
		}
	}
	return rows, nil
}

// printCutOffs shows the answers that were cut off.
func (p *cli) printCutOffs(list []cutOffRow) {
	if len(list) == 0 {
		return
	}
	t := p.table("ROUND CUT_OFF PARTIAL_ANSWER")
	for _, c := range list {
		t.row(fmt.Sprint(c.Round), c.Node, shorten(c.Text, 100))
	}
	fmt.Fprintln(p.out)
	t.print()
}

func (p *cli) printRounds(list []store.Run) {
	now, t := time.Now(), p.table("ROUND RUN STATUS ORIGIN STARTED TOOK TOKENS NOTE", "ORIGIN", "TOOK", "STARTED", "TOKENS")
	for i := range list {
		r := &list[i]
		t.row(fmt.Sprint(r.Round), r.ID, p.status(r.Head.Status), app.Printable(r.Origin), ago(now.Sub(r.Created)),
			took(r.Updated.Sub(r.Created)), tokens(r.Head.Usage), runNote(r))
	}
	t.print()
}

// printMessages is a piece of a history for people.
func (p *cli) printMessages(list []store.SessionMessage) {
	st, round := p.styleFor(p.out), -1
	for i := range list {
		m := &list[i]
		if m.Round != round {
			round = m.Round
			fmt.Fprintln(p.out, st.dim.Render(roundLine(m)))
		}
		p.printEntry(&m.Message, fmt.Sprintf("%4d ", m.Position))
	}
}

// roundLine says which round begins, and what became of it where that is not
// what is to be expected.
func roundLine(m *store.SessionMessage) string {
	if m.Round == 0 {
		return "── from the parent"
	}
	line := fmt.Sprintf("── round %d  %s", m.Round, m.At.Format("2006-01-02 15:04:05"))
	if s := m.Status.String(); s != "completed" {
		line += "  " + s
	}
	return line
}

// printEntry is one message for people, wrapped, behind a margin.
func (p *cli) printEntry(m *convo.Message, margin string) {
	st := p.styleFor(p.out)
	width := widthOf(p.out)
	if width == 0 {
		width = 100
	}
	who := map[convo.Role]string{
		convo.User: st.ask.Render("you"), convo.Assistant: st.good.Render("model"),
		convo.Tool: st.dim.Render("result of " + app.Printable(m.Name)), convo.System: st.dim.Render("system"),
	}[m.Role]
	room := max(width-lipgloss.Width(margin)-lipgloss.Width(who)-2, 30)
	blank := strings.Repeat(" ", lipgloss.Width(margin))
	text := strings.TrimSpace(app.Printable(m.Text))
	if m.Role == convo.Tool {
		text = st.dim.Render(shorten(text, 3*room))
	}
	if text != "" {
		text = lipgloss.Wrap(text, room, "")
	}
	fmt.Fprintf(p.out, "%s%s  %s\n", margin, who, strings.ReplaceAll(text, "\n", "\n"+blank+"  "))
	for _, c := range m.Calls {
		fmt.Fprintf(p.out, "%s  %s\n", blank, st.dim.Render("calls "+app.Printable(c.Name)+" "+shorten(c.Arguments, room)))
	}
}
