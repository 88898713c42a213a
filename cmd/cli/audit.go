package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
)

type auditOptions struct {
	filter auditlog.Filter
	since  time.Duration
	limit  int
	verify bool
}

func (p *cli) auditCommand() *cobra.Command {
	o := &auditOptions{}
	c := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what on a server, the newest first",
		Long: `List the audit log of "weir serve": one entry for each request that changes something, with
the user, the id of the token, the route, the ids of what it is about, and the outcome.
Entries have no contents. Commands that change users and tokens are in it too.

--verify checks that no entry was changed or removed since it was written.`,
		Example: `  weir audit --user ada --since 24h
  weir audit --action DELETE --outcome ok
  weir audit --verify`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.limit < 1 || o.since < 0 {
				return usagef("--limit and --since must be positive")
			}
			if !slices.Contains([]string{"", auditlog.OutcomeOK, auditlog.OutcomeRefused, auditlog.OutcomeFailed, auditlog.OutcomeOpen}, o.filter.Outcome) {
				return usagef("--outcome: expected ok, refused, failed or open")
			}
			return p.withDatabase(c.Context(), app.DatabaseOptions{ReadOnly: true}, func(ctx context.Context, s *store.Full) error {
				log := auditlog.New(s, auditlog.Options{})
				if o.verify {
					return p.verifyAudit(ctx, log)
				}
				return p.listAudit(ctx, log, o)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.filter.User, "user", "", "only what the user of this `NAME` did")
	f.StringVar(&o.filter.Token, "token", "", "only what was done with the token of this `ID`")
	f.StringVar(&o.filter.Action, "action", "", "only actions that contain this `TEXT`, such as /cancel or DELETE")
	f.StringVar(&o.filter.Object, "object", "", "only what is about this `ID`, or about the user of this name")
	f.StringVar(&o.filter.Outcome, "outcome", "", "only actions with this `OUTCOME`: ok, refused, failed or open")
	f.DurationVar(&o.since, "since", 0, "only the last `DURATION`, such as 24h")
	f.IntVar(&o.limit, "limit", 50, "at most `N` entries")
	f.BoolVar(&o.verify, "verify", false, "verify that no entry was changed or removed")
	f.BoolVar(&p.json, "json", false, "print JSON")
	_ = c.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions([]string{"ok", "refused", "failed", "open"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *cli) listAudit(ctx context.Context, log *auditlog.Log, o *auditOptions) error {
	if o.since > 0 {
		o.filter.Since = time.Now().Add(-o.since)
	}
	list := []auditlog.Entry{}
	for after, more := "", true; more && len(list) < o.limit; {
		page, err := log.List(ctx, o.filter, after, o.limit-len(list))
		if err != nil {
			return err
		}
		list = append(list, page.Entries...)
		after, more = page.Next, page.Next != ""
	}
	if p.json {
		writeJSON(p.out, list)
		return nil
	}
	if len(list) == 0 {
		p.notef("no entries")
		return nil
	}
	t := p.table("TIME USER TOKEN ACTION ABOUT OUTCOME", "ABOUT")
	for i := range list {
		e := &list[i]
		about := make([]string, 0, len(e.Objects))
		for _, kind := range slices.Sorted(maps.Keys(e.Objects)) {
			about = append(about, kind+" "+e.Objects[kind])
		}
		outcome := e.Outcome()
		if e.Code != "" {
			outcome += " (" + e.Code + ")"
		}
		t.row(e.At.Local().Format(time.DateTime), textOrDash(app.Printable(e.User)), textOrDash(app.Printable(e.Token)), app.Printable(e.Action),
			textOrDash(app.Printable(strings.Join(about, ", "))), app.Printable(outcome))
	}
	t.print()
	return nil
}

func (p *cli) verifyAudit(ctx context.Context, log *auditlog.Log) error {
	v, err := log.Verify(ctx)
	if err != nil {
		return err
	}
	if p.json {
		writeJSON(p.out, v)
	} else {
		fmt.Fprintf(p.out, "entries verified: %d, in %s\n", v.Entries, count(v.Chains, "chain"))
		for _, problem := range v.Problems {
			fmt.Fprintln(p.out, app.Printable(problem))
		}
	}
	if len(v.Problems) > 0 {
		return fmt.Errorf("the audit log does not verify: %w", store.ErrCorrupt)
	}
	return nil
}

// recordCommand records in the audit log what a command has changed.
func (p *cli) recordCommand(ctx context.Context, s *store.Full, action string, objects map[string]string) error {
	if s.Capabilities().Documents == nil {
		return nil
	}
	return auditlog.New(s, auditlog.Options{}).Record(ctx, auditlog.Entry{Via: "command", User: p.userName(), Action: action, Objects: objects, Status: http.StatusOK})
}
