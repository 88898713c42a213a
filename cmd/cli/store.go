package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store"
)

func (p *cli) storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Copy, back up and restore databases, and change their keys",
		Args:  exactArgs(),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.copyStoreCommand(), p.backupCommand(), p.restoreCommand(), p.rewrapCommand())
	return c
}

func (p *cli) copyStoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy all runs and sessions of a database to another",
		Long: `Copy all runs and sessions of a database to another, with memory, values of users, access
tokens and keys, the cache, trajectories, the chains of erased runs, and all that a server
keeps: flows, webhooks, triggers, answer links, conversations. Webhooks and triggers are
paused in the copy, because those of FROM stay active: resume them when FROM is not served any more.
A database is the path of a file, or
postgres://USER@HOST/NAME. Runs keep their ids and can be shown, resumed, forked and verified
in the copy.

The command verifies FROM first and TO afterwards: each run must have the same head in both.
FROM does not change. A copy that was interrupted continues when the command is repeated.
What changed in FROM since an earlier copy is copied; of two changes of a record of a server or
a value of a user, the later one stays. What only TO has is listed.
FROM must be idle: no process executes its runs, and no message waits. What is not copied is
listed.`,
		Example: `  weir store copy .weir/weir.db postgres://weir@db.example/weir
  weir store copy postgres://weir@db.example/weir copy.db`,
		Args: exactArgs("FROM", "TO"),
		RunE: func(c *cobra.Command, args []string) error { return p.copyStore(c.Context(), args[0], args[1]) },
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

func (p *cli) copyStore(ctx context.Context, from, to string) error {
	if from == to {
		return usagef("FROM and TO are the same database")
	}
	if err := app.CheckDatabaseExists(from); err != nil {
		return err
	}
	fromStorage, err := p.storageOf(from)
	if err != nil {
		return err
	}
	toStorage, err := p.storageOf(to)
	if err != nil {
		return err
	}
	source, err := app.OpenDatabase(ctx, from, app.DatabaseOptions{ReadOnly: true, Storage: fromStorage})
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it only read
	target, err := app.OpenDatabase(ctx, to, app.DatabaseOptions{Sync: p.syncMode(), Storage: toStorage})
	if err != nil {
		return err
	}
	var progress audit.Options
	p.showProgress(&progress)
	got, err := audit.Copy(ctx, source, target, progress.Progress)
	if err = errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copy %s to %s: %w", store.RedactURL(from), store.RedactURL(to), err)
	}
	if p.json {
		writeJSON(p.out, got)
		return nil
	}
	fmt.Fprintf(p.out, "copied %s with %s; all heads are the same\n", count(got.Runs, "run"), count(int(got.Commits), "commit"))
	if got.Existing > 0 {
		fmt.Fprintf(p.out, "%s had been there\n", count(got.Existing, "run"))
	}
	for _, x := range []struct {
		n    int
		what string
	}{
		{got.Memories, "remembered item"},
		{got.Values, "value of a user"},
		{got.Tokens, "access token"},
		{got.Learned, "learned program"},
		{got.Cached, "entry of the cache"},
		{got.Sessions, "session without a round"},
		{got.Erased, "chain of an erased run"},
		{got.Trajectories, "round of a trajectory"},
		{got.Documents, "document of a server"},
	} {
		if x.n > 0 {
			fmt.Fprintf(p.out, "copied beside runs: %d × %s\n", x.n, x.what)
		}
	}
	if got.Held > 0 {
		p.notef("webhooks and triggers that are paused in the copy: %d; resume them when the source is no longer served", got.Held)
	}
	if len(got.Surplus) > 0 {
		p.notef("only in the copy: %s", strings.Join(got.Surplus, ", "))
	}
	if len(got.Left) > 0 {
		p.notef("not copied: %s", strings.Join(got.Left, ", "))
	}
	return nil
}
