package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store"
)

func (p *cli) listUsersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the records of users",
		Args:  exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDatabase(c.Context(), app.DatabaseOptions{ReadOnly: true}, func(ctx context.Context, s *store.Full) error {
				var list []server.User
				for after, done := "", false; !done; {
					page, err := server.Users(ctx, s, after, usersPage)
					if err != nil {
						return err
					}
					list = append(list, page...)
					if done = len(page) < usersPage; !done {
						after = page[len(page)-1].Name
					}
				}
				p.printUsers(list)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON array")
	return c
}

// usersPage is how many records are read at once.
const usersPage = 200

func (p *cli) printUsers(list []server.User) {
	if p.json {
		writeJSON(p.out, append([]server.User{}, list...))
		return
	}
	if len(list) == 0 {
		p.notef("no user has a record")
		return
	}
	t := p.table("USER ROLE STATE NOTE", "NOTE")
	for i := range list {
		u := &list[i]
		state := "active"
		if u.Disabled {
			state = "deactivated"
		}
		t.row(app.Printable(u.Name), string(u.Role), state, textOrDash(app.Printable(u.Note)))
	}
	t.print()
}

func (p *cli) setUserCommand() *cobra.Command {
	var role, note string
	c := &cobra.Command{
		Use:     "set USER --role ROLE",
		Short:   "Set the role of a user",
		Example: `  weir users set ada --role operator`,
		Args:    exactArgs("USER"),
		RunE: func(c *cobra.Command, args []string) error {
			if role == "" && !c.Flags().Changed("note") {
				return usagef("expected --role owner, operator or viewer, or --note TEXT")
			}
			return p.changeUser(c.Context(), args[0], func(u *server.User) {
				if role != "" {
					u.Role = server.Role(role)
				}
				if c.Flags().Changed("note") {
					u.Note = note
				}
			})
		},
	}
	c.Flags().StringVar(&role, "role", "", "the `ROLE`: owner, operator or viewer")
	c.Flags().StringVar(&note, "note", "", "a `TEXT` about the user")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"owner", "operator", "viewer"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// disableUserCommand is `weir users disable`, or `weir users enable`.
func (p *cli) disableUserCommand(disable bool) *cobra.Command {
	use, short := "enable", "Make the tokens of a user valid again"
	if disable {
		use, short = "disable", "Deactivate users: their tokens stop at once, and their triggers start nothing"
	}
	return &cobra.Command{
		Use:   use + " USER...",
		Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected USER")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if err := p.changeUser(c.Context(), name, func(u *server.User) { u.Disabled = disable }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (p *cli) changeUser(ctx context.Context, name string, change func(u *server.User)) error {
	return p.withDatabase(ctx, app.DatabaseOptions{}, func(ctx context.Context, s *store.Full) error {
		u, err := server.ChangeUser(ctx, s, name, change)
		if err != nil {
			return err
		}
		objects := map[string]string{"user": u.Name, "role": string(u.Role), "disabled": strconv.FormatBool(u.Disabled)}
		if err := p.recordCommand(ctx, s, "weir users", objects); err != nil {
			return err
		}
		state := []string{string(u.Role)}
		if u.Disabled {
			state = append(state, "deactivated")
		}
		p.notef("user %s: %s", app.Printable(u.Name), strings.Join(state, ", "))
		return nil
	})
}
