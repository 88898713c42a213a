package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// userStateRow is a value of a user's state as --json prints it.
type userStateRow struct {
	User    string       `json:"user"`
	Flow    string       `json:"flow"`
	Key     string       `json:"key"`
	Value   engine.Value `json:"value"`
	Version int64        `json:"version"` // number of changes
	Run     string       `json:"run"`     // that wrote it last, "" if it was set by hand or the run was deleted
	By      string       `json:"by"`      // who set it by hand
	At      time.Time    `json:"at"`
}

func (p *cli) usersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "users",
		Short: "Show and change users of a server, and what flows keep for users",
		Long: `Show and change the records of users of "weir serve", and what flows keep for users.
A user needs no record: without one, the scopes of the user's tokens count alone. The role
of a record bounds them:
  owner      every scope
  operator   all but admin
  viewer     read`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	state := &cobra.Command{
		Use:   "state",
		Short: "Show and change the values that flows keep for a user",
		Long: `Show and change the state of users: the values of state keys that a flow declares with
"scope: user". Every run of the flow for that user, in any session, reads them when it
starts and changes them when it completes. "weir sessions delete --user" deletes them;
deleting a session does not.`,
		Example: `  weir users state show ada
  weir users state set ada visits=3 --flow flow.yaml
  weir users state reset ada visits --flow-name support`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	state.AddCommand(p.showUserStateCommand(), p.setUserStateCommand(), p.resetUserStateCommand())
	c.AddCommand(p.listUsersCommand(), p.setUserCommand(), p.disableUserCommand(true), p.disableUserCommand(false), state)
	return c
}

func (p *cli) showUserStateCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "show [USER]",
		Short:   "Print the values that flows keep for a user, or for all users",
		Example: `  weir users state show ada --json`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			user := ""
			if len(args) > 0 {
				user = args[0]
			}
			return p.withRecord(c.Context(), func(ctx context.Context, a *application) error {
				list, err := a.UserState(ctx, user)
				if err == nil {
					p.printUserState(list, asJSON)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

// withRecord calls fn with the record opened, for commands that execute no nodes.
func (p *cli) withRecord(ctx context.Context, fn func(ctx context.Context, a *application) error) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it wrote is durable
	return fn(ctx, a)
}

func (p *cli) printUserState(list []store.UserValue, asJSON bool) {
	if asJSON {
		rows := make([]userStateRow, 0, len(list))
		for _, v := range list {
			rows = append(rows, userStateRow{v.User, v.Flow, v.Key, v.Value, v.Version, v.Run, v.By, v.At})
		}
		writeJSON(p.out, rows)
		return
	}
	if len(list) == 0 {
		p.notef("no flow keeps a value")
		return
	}
	now, t := time.Now(), p.table("USER FLOW KEY VALUE FROM CHANGED", "CHANGED")
	for i := range list {
		v := &list[i]
		from := "deleted run"
		switch {
		case v.Run != "":
			from = "run " + v.Run
		case v.By != "":
			from = "set by " + app.Printable(v.By)
		}
		t.row(app.Printable(v.User), app.Printable(v.Flow), app.Printable(v.Key), shorten(stateText(v.Value), 60), from, ago(now.Sub(v.At)))
	}
	t.print()
}

func (p *cli) setUserStateCommand() *cobra.Command {
	file := ""
	c := &cobra.Command{
		Use:   "set USER KEY=VALUE... --flow FILE",
		Short: "Set values that the next run starts with",
		Long: `Set values that the next run of a flow for the user starts with: VALUE is JSON or text.
The flow must declare each KEY with "scope: user", and the value must fit the key's schema
and reducer. A run that is in progress combines what it writes with the value that is set.`,
		Example: `  weir users state set ada visits=3 --flow flow.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 || file == "" {
				return usagef("expected USER KEY=VALUE... --flow FILE")
			}
			values, err := p.assignments("", args[1:])
			if err != nil {
				return err
			}
			f, err := p.loadFlow(file)
			if err != nil {
				return err
			}
			return p.withRecord(c.Context(), func(ctx context.Context, a *application) error {
				return a.SetUserState(ctx, f, args[0], values, p.userName())
			})
		},
	}
	c.Flags().StringVar(&file, "flow", "", "the flow `FILE` that declares the keys")
	return c
}

func (p *cli) resetUserStateCommand() *cobra.Command {
	name, all := "", false
	c := &cobra.Command{
		Use:   "reset USER (KEY... | --all) --flow-name NAME",
		Short: "Remove values, so that the next run starts with the initial ones",
		Example: `  weir users state reset ada visits --flow-name support
  weir users state reset ada --all --flow-name support`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || (len(args) == 1) != all || name == "" {
				return usagef("expected USER KEY... --flow-name NAME, or USER --all --flow-name NAME")
			}
			return p.withRecord(c.Context(), func(ctx context.Context, a *application) error {
				return a.ResetUserState(ctx, name, args[0], args[1:], p.userName())
			})
		},
	}
	c.Flags().StringVar(&name, "flow-name", "", "the `NAME` of the flow that keeps the values")
	c.Flags().BoolVar(&all, "all", false, "remove all values")
	return c
}
