package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store"
)

// tokenRow is a token as `weir tokens list --json` prints it.
type tokenRow struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes"`
	State   string    `json:"state"` // valid, expired or revoked
	Created time.Time `json:"created"`
	Expires string    `json:"expires"` // "" is never
	Token   string    `json:"token,omitempty"`
}

func tokenRowOf(t *store.Token) tokenRow {
	r := tokenRow{ID: t.ID, User: t.User, Name: t.Name, Scopes: t.Scopes, State: "valid", Created: t.Created.UTC()}
	if !t.Expires.IsZero() {
		r.Expires = t.Expires.UTC().Format(time.RFC3339)
	}
	switch {
	case !t.Revoked.IsZero():
		r.State = "revoked"
	case !t.Valid(time.Now()):
		r.State = "expired"
	}
	return r
}

func (p *cli) tokensCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tokens",
		Short: "Create, list and revoke the tokens of a server",
		Long: `Create, list and revoke the tokens with which clients use "weir serve". A token acts for one
user: it reaches only runs, sessions and memory of that user. Its scopes are:
  read     read runs, sessions and what happened
  start    start, cancel, resume, fork and correct runs; send messages
  answer   answer questions and bring events
  admin    all of these, for the objects of all users
  act-as   name the person for whom a request is made, for a program that serves several
Only a digest of a token is stored.`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.createTokenCommand(), p.listTokensCommand(), p.revokeTokenCommand())
	return c
}

func (p *cli) createTokenCommand() *cobra.Command {
	var user, name string
	var scopes []string
	var lifetime time.Duration
	c := &cobra.Command{
		Use:     "create",
		Short:   "Create a token and print it once",
		Example: `  weir tokens create --user ada --name laptop --scope read,start,answer --for 720h`,
		Args:    exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if user == "" || len(scopes) == 0 || lifetime < 0 {
				return usagef("expected --user NAME, --scope SCOPE and, with --for, a positive duration; see `weir tokens create --help`")
			}
			return p.withDatabase(c.Context(), app.DatabaseOptions{}, func(ctx context.Context, s *store.Full) error {
				secret, t, err := server.NewToken(ctx, s, user, name, scopes, lifetime)
				if err != nil {
					return err
				}
				if err := p.recordCommand(ctx, s, "weir tokens create", map[string]string{"token": t.ID, "user": user, "scopes": strings.Join(scopes, ",")}); err != nil {
					return err
				}
				if p.json {
					row := tokenRowOf(&t)
					row.Token = secret
					writeJSON(p.out, row)
					return nil
				}
				fmt.Fprintln(p.out, secret)
				p.notef("token %s of user %s: it is not shown again", t.ID, app.Printable(user))
				return nil
			})
		},
	}
	f := c.Flags()
	f.StringVar(&user, "user", "", "the `NAME` of the user that the token acts for")
	f.StringVar(&name, "name", "", "what the token is for")
	f.StringSliceVar(&scopes, "scope", nil, "a `SCOPE`: read, start, answer, admin or act-as; may be repeated")
	f.DurationVar(&lifetime, "for", 0, "how long the token is valid (default: until it is revoked)")
	f.BoolVar(&p.json, "json", false, "print one JSON object")
	_ = c.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"read", "start", "answer", "admin", "act-as"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *cli) listTokensCommand() *cobra.Command {
	var user string
	c := &cobra.Command{
		Use:   "list",
		Short: "List tokens, oldest first",
		Args:  exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDatabase(c.Context(), app.DatabaseOptions{ReadOnly: true}, func(ctx context.Context, s *store.Full) error {
				list, err := s.Tokens(ctx, user)
				if err != nil {
					return err
				}
				p.printTokens(list)
				return nil
			})
		},
	}
	c.Flags().StringVar(&user, "user", "", "only tokens of this `NAME`")
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON array")
	return c
}

func (p *cli) printTokens(list []store.Token) {
	t := p.table("TOKEN USER NAME SCOPES STATE EXPIRES", "NAME", "EXPIRES")
	printList(p, list, p.json, tokenRowOf, "no tokens", t, func(token *store.Token) []string {
		r := tokenRowOf(token)
		return []string{r.ID, app.Printable(r.User), textOrDash(app.Printable(r.Name)), strings.Join(r.Scopes, ","), r.State, textOrDash(r.Expires)}
	})
}

func (p *cli) revokeTokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke TOKEN...",
		Short: "Revoke tokens by their ids",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected TOKEN; `weir tokens list` lists the ids")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withDatabase(c.Context(), app.DatabaseOptions{}, func(ctx context.Context, s *store.Full) error {
				for _, id := range args {
					err := server.RevokeToken(ctx, s, id, time.Now())
					if errors.Is(err, store.ErrNotFound) {
						return usagef("there is no token with the id %q; `weir tokens list` lists the ids", id)
					}
					if err != nil {
						return err
					}
					if err := p.recordCommand(ctx, s, "weir tokens revoke", map[string]string{"token": id}); err != nil {
						return err
					}
					p.notef("revoked token %s", id)
				}
				return nil
			})
		},
	}
	return c
}

// withDatabase opens the database alone: no provider or tool is needed.
func (p *cli) withDatabase(ctx context.Context, o app.DatabaseOptions, do func(ctx context.Context, s *store.Full) error) error {
	o.Sync = p.syncMode()
	var err error
	if o.Storage, err = p.storageOf(p.database()); err != nil {
		return err
	}
	d, err := app.OpenDatabase(ctx, p.database(), o)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, d.Full), d.Close())
}
