package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

func (p *cli) renameSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rename SESSION TITLE",
		Short: "Give a session a title",
		Long: `Give a session a title: one line of at most 200 bytes, which listings show. An empty title
removes it. The thread, by which messages find the session, stays.`,
		Example:           `  weir sessions rename 01kafw "Berth for the Aurora"`,
		Args:              exactArgs("SESSION", "TITLE"),
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				return asUsage(a.RenameSession(ctx, s.ID, args[1], p.userName()))
			})
		},
	}
}

func (p *cli) labelSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "label SESSION [NAME...]",
		Short: "Set the labels of a session",
		Long: `Set all labels of a session, at most 20: lower case letters, digits, dots, hyphens and
underscores. Without NAME, all labels are removed. "weir sessions --label NAME" lists the
sessions with a label.`,
		Example: `  weir sessions label 01kafw harbour urgent
  weir sessions --label urgent`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected SESSION [NAME...]")
			}
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				return asUsage(a.LabelSession(ctx, s.ID, args[1:], p.userName()))
			})
		},
	}
}

// asUsage has what a person may not name or add be a mistake of the command line.
func asUsage(err error) error {
	var e *engine.Error
	if errors.As(err, &e) && e.Code == engine.CodeUsage {
		return &usageError{Err: err}
	}
	return err
}

// budgetReport is the budget of a session as --json prints it; 0 limits nothing.
type budgetReport struct {
	MaxTokens int                    `json:"max_tokens"`
	MaxCalls  int                    `json:"max_calls"`
	MaxCost   float64                `json:"max_cost"` // US dollars
	Increase  session.BudgetIncrease `json:"increase"` // contained in the limits
	Used      app.Usage              `json:"used"`
}

func (p *cli) sessionBudgetCommand() *cobra.Command {
	file, asJSON := "", false
	c := &cobra.Command{
		Use:   "budget SESSION [MORE]",
		Short: "Show the budget of a session, or add to it",
		Long: `Show what the rounds of a session may spend together, and what they have used. With MORE,
add to it first: "10000 tokens", "3 calls", "$0.50", or several with commas. The flow must
limit what is added, with "session: {budget: ...}". The increase holds for all rounds that
start afterwards. A round that waits for an increase is answered with "weir answer".`,
		Example: `  weir sessions budget 01kafw
  weir sessions budget 01kafw "10000 tokens, 3 calls"`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usagef("expected SESSION [MORE]")
			}
			var f *weir.Flow
			if file != "" {
				var err error
				if f, err = p.loadFlow(file); err != nil {
					return err
				}
			}
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				x, err := a.Session(ctx, f, weir.SessionOptions{ID: s.ID})
				if err != nil {
					return err
				}
				b, err := p.sessionBudget(ctx, x, args[1:])
				if err != nil {
					return err
				}
				p.printSessionBudget(&b, asJSON)
				return nil
			})
		},
	}
	c.Flags().StringVar(&file, "flow", "", "the flow `FILE` of the next round; without it, the flow of the last one")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// sessionBudget returns the budget of a session, after an increase if there is one.
func (p *cli) sessionBudget(ctx context.Context, x *weir.Session, more []string) (session.Budget, error) {
	if len(more) == 0 {
		return x.Budget(ctx)
	}
	sum, err := parseBudgetIncrease(more[0])
	if err != nil {
		return session.Budget{}, &usageError{Err: err}
	}
	var add session.BudgetIncrease
	for name, v := range sum {
		var fits bool
		switch name {
		case "maxTokens":
			add.Tokens, fits = wholeNumber(v)
		case "maxCalls":
			add.Calls, fits = wholeNumber(v)
		case "maxCost":
			add.Cost, fits = number(v)
		}
		if !fits {
			return session.Budget{}, usagef("%s: expected maxTokens and maxCalls as whole numbers, and maxCost as US dollars", app.Printable(name))
		}
	}
	b, err := x.IncreaseBudget(ctx, add, p.userName())
	return b, asUsage(err)
}

func wholeNumber(v any) (int, bool) {
	n, ok := v.(int64)
	return int(n), ok
}

func number(v any) (float64, bool) {
	if n, ok := v.(int64); ok {
		return float64(n), true
	}
	n, ok := v.(float64)
	return n, ok
}

func (p *cli) printSessionBudget(b *session.Budget, asJSON bool) {
	if asJSON {
		writeJSON(p.out, budgetReport{b.Limits.MaxTokens, b.Limits.MaxCalls, b.Limits.MaxCost, b.Increase, app.UsageOf(b.Used)})
		return
	}
	if b.Limits.MaxTokens == 0 && b.Limits.MaxCalls == 0 && b.Limits.MaxCost == 0 {
		p.notef("the flow gives its sessions no budget")
		return
	}
	t := p.table("BUDGET LIMIT USED ADDED")
	if n := b.Limits.MaxTokens; n > 0 {
		t.row("tokens", fmt.Sprint(n), fmt.Sprint(b.Used.Input+b.Used.Output), fmt.Sprint(b.Increase.Tokens))
	}
	if n := b.Limits.MaxCalls; n > 0 {
		t.row("calls", fmt.Sprint(n), fmt.Sprint(b.Used.Calls), fmt.Sprint(b.Increase.Calls))
	}
	if n := b.Limits.MaxCost; n > 0 {
		t.row("cost", dollars(engine.Micros(n)), dollars(b.Used.CostMicros), dollars(engine.Micros(b.Increase.Cost)))
	}
	t.print()
}

// printNames prints the title and the labels of a session, if it has any.
func (p *cli) printNames(ctx context.Context, a *application, id string) error {
	n, err := a.SessionNames(ctx, id)
	if err != nil {
		return err
	}
	if n.Title != "" {
		fmt.Fprintln(p.out, "title "+app.Printable(n.Title))
	}
	if len(n.Labels) > 0 {
		fmt.Fprintln(p.out, "labels "+strings.Join(n.Labels, ", "))
	}
	return nil
}

// namesOf returns the names of sessions, and whether one has any.
func (a *application) namesOf(ctx context.Context, list []store.Session) (names []session.Names, named bool, err error) {
	for i := range list {
		n, err := a.SessionNames(ctx, list[i].ID)
		if err != nil {
			return nil, false, err
		}
		names, named = append(names, n), named || n.Title != "" || len(n.Labels) > 0
	}
	return names, named, nil
}

// listSessions lists the sessions that options select.
func (a *application) listSessions(ctx context.Context, o *sessionsOptions) ([]store.Session, error) {
	if o.label == "" {
		return a.Sessions(ctx, o.SessionFilter)
	}
	return a.LabelledSessions(ctx, o.label, o.SessionFilter)
}

func (p *cli) writeSession(ctx context.Context, a *application, s *store.Session) error {
	row, err := a.SessionRow(ctx, s)
	if err == nil {
		writeJSON(p.out, row)
	}
	return err
}

func (p *cli) writeSessions(ctx context.Context, a *application, list []store.Session) error {
	rows, err := a.SessionRows(ctx, list)
	if err == nil {
		writeJSON(p.out, rows)
	}
	return err
}
