package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// stateRow is a value of a session's state as --json prints it.
type stateRow struct {
	Key   string       `json:"key"`
	Value engine.Value `json:"value"`
	Round int          `json:"round"` // after which it holds; 0 is what came with the parent
	Run   string       `json:"run"`   // the round that wrote it, "" for none of this session
	By    string       `json:"by"`    // who set it by hand
	At    time.Time    `json:"at"`
}

func stateRows(list []store.StateValue) []stateRow {
	rows := make([]stateRow, 0, len(list))
	for _, v := range list {
		rows = append(rows, stateRow{v.Key, v.Value, v.Round, v.Run, v.By, v.At})
	}
	return rows
}

func (p *cli) sessionStateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "Show and change the values that a session keeps between its rounds",
		Long: `Show and change the state of a session: the values of state keys that its flow declares
with "scope: session". A round reads them when it starts, and changes them when it
completes. They cannot be changed while a round runs.`,
		Example: `  weir sessions state show 01kafw
  weir sessions state set 01kafw counter=3
  weir sessions state reset 01kafw counter`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.showStateCommand(), p.setStateCommand(), p.resetStateCommand())
	return c
}

func (p *cli) showStateCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print the values that a session keeps",
		Long: `Print the values that a session keeps, with the round that wrote each or who set it. A key
that no round has written yet is not listed: the next round starts with its initial value.`,
		Example:           `  weir sessions state show 01kafw --json`,
		Args:              exactArgs("SESSION"),
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				return p.printSessionState(ctx, a, s.ID, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func (p *cli) printSessionState(ctx context.Context, a *application, session string, asJSON bool) error {
	list, err := a.SessionState(ctx, session)
	if err != nil {
		return err
	}
	if asJSON {
		writeJSON(p.out, stateRows(list))
		return nil
	}
	if len(list) == 0 {
		p.notef("the session keeps no values")
		return nil
	}
	p.printState(list)
	return nil
}

// printState lists values of a session's state.
func (p *cli) printState(list []store.StateValue) {
	now, t := time.Now(), p.table("STATE VALUE FROM CHANGED", "CHANGED")
	for _, v := range list {
		t.row(app.Printable(v.Key), shorten(stateText(v.Value), 60), stateOrigin(&v), ago(now.Sub(v.At)))
	}
	t.print()
}

func stateText(v engine.Value) string {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err.Error()
	}
	return app.Printable(string(b))
}

// stateOrigin says what gave a key its value.
func stateOrigin(v *store.StateValue) string {
	switch {
	case v.Run != "":
		return fmt.Sprintf("round %d", v.Round)
	case v.Round == 0 && v.By == "":
		return "parent"
	case v.By == "":
		return "set by hand"
	}
	return "set by " + app.Printable(v.By)
}

func (p *cli) setStateCommand() *cobra.Command {
	file := ""
	c := &cobra.Command{
		Use:   "set SESSION KEY=VALUE...",
		Short: "Set values that the next round starts with",
		Long: `Set values that the next round starts with: VALUE is JSON or text. The flow must declare
each KEY with "scope: session", and the value must fit the key's schema and reducer. The
declarations are those of the last round, or of --flow.

A failed round that started before the change cannot be retried after it.`,
		Example: `  weir sessions state set 01kafw counter=3 'plan={"seats": 2}'
  weir sessions state set 01kafw counter=many --flow flow.yaml`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("expected SESSION KEY=VALUE...")
			}
			values, err := p.assignments("", args[1:])
			if err != nil {
				return err
			}
			e := session.StateEdit{Set: values, By: p.userName()}
			if file != "" {
				if e.Flow, err = p.loadFlow(file); err != nil {
					return err
				}
			}
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				return a.EditSessionState(ctx, s.ID, e)
			})
		},
	}
	c.Flags().StringVar(&file, "flow", "", "the flow `FILE` that declares the keys; without it, the flow of the last round")
	return c
}

func (p *cli) resetStateCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "reset SESSION (KEY... | --all)",
		Short: "Remove values, so that the next round starts with the initial ones",
		Long: `Remove values that a session keeps, so that the next round starts with the initial values
that its flow declares.

A failed round that started before the change cannot be retried after it.`,
		Example: `  weir sessions state reset 01kafw counter
  weir sessions state reset 01kafw --all`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || (len(args) == 1) != all {
				return usagef("expected SESSION KEY..., or SESSION --all")
			}
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				return a.EditSessionState(ctx, s.ID, session.StateEdit{Reset: args[1:], All: all, By: p.userName()})
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove all values")
	return c
}
