package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// bulkOptions say on which runs a command acts.
type bulkOptions struct {
	runsOptions
	older     string
	dry       bool
	assumeYes bool
}

// maxBulkRuns is how many runs one command acts on.
const maxBulkRuns = 10_000

// bulkWorkers is how many runs of a command are acted on at the same time.
const bulkWorkers = 8

func (p *cli) bulkCommands() []*cobra.Command {
	return []*cobra.Command{
		p.bulkCommand(app.BulkCancel, "Cancel the runs that a filter selects",
			`Cancel the runs that have not ended and that a filter selects. A run that another process
executes is notified, and ends there.`,
			`  weir runs cancel --flow invoice-review --status paused --older-than 30d`),
		p.bulkCommand(app.BulkRetry, "Run the failed nodes of the runs that a filter selects again",
			`Run again, in each failed run that a filter selects, the node with which it failed, and
continue the runs. Completed effects are not repeated. The command waits for the runs.`,
			`  weir runs retry --flow invoice-review --dry-run`),
		p.bulkCommand(app.BulkDelete, "Delete the runs that a filter selects",
			`Delete for good the runs that have ended and that a filter selects, with their child runs.
Rounds of sessions are deleted with their session. Runs whose past others share are kept.`,
			`  weir runs delete --status completed --older-than 90d`),
	}
}

func (p *cli) bulkCommand(action app.BulkAction, short, long, example string) *cobra.Command {
	o := &bulkOptions{}
	c := &cobra.Command{
		Use: string(action), Short: short,
		Long: long + `

The command lists the runs and asks before it acts; --yes answers, and --dry-run only
lists. It needs a filter, or --all.`,
		Example: example,
		Args:    exactArgs(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.bulk(c.Context(), action, o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.status, "status", nil, "only runs with this `STATUS`; may be repeated")
	f.StringVar(&o.flow, "flow", "", "only runs of the flow with this `NAME`")
	f.StringVar(&o.user, "user", "", "only runs of this `USER`")
	f.StringVar(&o.older, "older-than", "", "only runs that were started longer ago than `AGE`, for example 12h or 90d")
	f.BoolVar(&o.all, "all", false, "without a filter, all runs")
	f.BoolVar(&o.dry, "dry-run", false, "list the runs and do nothing")
	f.BoolVar(&o.assumeYes, "yes", false, "do not ask")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(app.RunStatuses(), noFiles))
	return c
}

// bulkReport is what a command did with several runs, as --json prints it.
type bulkReport struct {
	Action app.BulkAction `json:"action"`
	Done   bool           `json:"done"` // false: they were listed
	Runs   []bulkRun      `json:"runs"`
	Kept   []app.KeptRun  `json:"kept"` // not acted on, and why
	More   bool           `json:"more"` // there are more runs than one command acts on
}

type bulkRun struct {
	Run    string `json:"run"`
	Flow   string `json:"flow"`
	Status string `json:"status"` // afterwards; "deleted" for one that is gone
	Error  string `json:"error"`  // why it was not acted on, or why it failed again; "" for none
}

func (p *cli) bulk(ctx context.Context, action app.BulkAction, o *bulkOptions) error {
	o.limit = 1
	filter, err := o.filter()
	if err != nil {
		return err
	}
	if len(o.status) == 0 && o.flow == "" && o.user == "" && o.older == "" && !o.all {
		return usagef("expected a filter, or --all; see `weir runs %s --help`", action)
	}
	var before time.Time
	if o.older != "" {
		age, err := flow.ParseLifetime(o.older)
		if err != nil || age <= 0 {
			return usagef("--older-than %s: expected a time such as 30d or 12h", o.older)
		}
		before = time.Now().Add(-age)
	}
	if err := p.mustExist(); err != nil {
		return err
	}
	a, err := p.open(ctx, app.Options{})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // the runs have ended, or the error says more
	selected, err := a.SelectRuns(ctx, action, filter, before, maxBulkRuns)
	if err != nil {
		return err
	}
	report := bulkReport{Action: action, Runs: []bulkRun{}, Kept: selected.Kept, More: selected.More}
	for i := range selected.Runs {
		r := &selected.Runs[i]
		report.Runs = append(report.Runs, bulkRun{Run: r.ID, Flow: r.Flow, Status: r.Head.Status.String()})
	}
	if !o.json {
		p.printSelection(selected)
	}
	if o.dry || len(report.Runs) == 0 {
		return p.endBulk(&report, o)
	}
	question := fmt.Sprintf("%s %s?", strings.ToUpper(string(action[:1]))+string(action[1:]), count(len(report.Runs), "run"))
	if yes, err := p.confirmDelete(ctx, question, &deleteOptions{assumeYes: o.assumeYes, json: o.json}); err != nil || !yes {
		return err
	}
	report.Done = true
	p.act(ctx, a, &report, selected.Runs)
	if action == app.BulkDelete {
		if _, err := a.Compact(ctx); err != nil {
			return err
		}
	}
	return p.endBulk(&report, o)
}

// act carries out the action, on several runs at a time, and writes what became of them.
func (p *cli) act(ctx context.Context, a *application, report *bulkReport, runs []store.Run) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(bulkWorkers, len(runs)) {
		workers.Go(func() {
			for i := range next {
				status, err := p.actOn(ctx, a, report.Action, &runs[i])
				if report.Runs[i].Status = status; err != nil {
					report.Runs[i].Error = err.Error()
				}
			}
		})
	}
	for i := range runs {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
			report.Runs[i].Error = "not done: the command was stopped"
		}
	}
	close(next)
	workers.Wait()
}

// actOn carries out the action on one run, waits until it rests, and returns its status.
func (p *cli) actOn(ctx context.Context, a *application, action app.BulkAction, r *store.Run) (string, error) {
	run, err := a.ActOn(ctx, action, r, p.userName())
	switch {
	case err != nil:
		return r.Head.Status.String(), err
	case action == app.BulkDelete:
		return "deleted", nil
	case run == nil: // the process that executes it was notified
		return "cancelling", nil
	}
	result, err := run.Wait(ctx)
	if err == nil && result.Error != nil {
		err = result.Error
	}
	return result.Status.String(), err
}

func (p *cli) printSelection(s *app.BulkSelection) {
	const shown = 20
	p.printRuns(s.Runs[:min(shown, len(s.Runs))], make([]int, len(s.Runs)))
	if n := len(s.Runs) - shown; n > 0 {
		p.notef("and %d more", n)
	}
	for _, k := range s.Kept[:min(shown, len(s.Kept))] {
		p.notef("kept %s: %s", k.Run, app.Printable(k.Why))
	}
	if n := len(s.Kept) - shown; n > 0 {
		p.notef("and %d more are kept", n)
	}
	if s.More {
		p.notef("there are more runs than one command acts on; repeat it afterwards")
	}
}

// endBulk prints what was done. The error has exit code 1 if a run was not acted on, or failed
// again.
func (p *cli) endBulk(report *bulkReport, o *bulkOptions) error {
	if o.json {
		writeJSON(p.out, report)
	}
	if !report.Done {
		return nil
	}
	failed, by := 0, map[string]int{}
	var order []string
	for i := range report.Runs {
		r := &report.Runs[i]
		if r.Error != "" {
			failed++
			if !o.json {
				p.notef("%s: %s", r.Run, topLine(r.Error))
			}
		}
		if by[r.Status]++; by[r.Status] == 1 {
			order = append(order, r.Status)
		}
	}
	if !o.json {
		for _, status := range order {
			fmt.Fprintf(p.out, "%s %s\n", count(by[status], "run"), status)
		}
	}
	if failed > 0 {
		return &exitError{exitFailed}
	}
	return nil
}
