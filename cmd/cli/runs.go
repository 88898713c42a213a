package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

type runsOptions struct {
	status []string
	flow   string
	user   string
	parent string
	all    bool
	blocks bool
	stuck  bool
	idle   time.Duration
	limit  int
	json   bool
}

func (p *cli) runsCommand() *cobra.Command {
	o := &runsOptions{}
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Long: `List runs, newest first. Child runs, which nodes of type flow and tool calls start, are
counted with the run that they belong to. --all and --parent list them; "weir show RUN"
prints the tree.

--blocked lists, children included, the runs that have not ended and that this program
cannot continue: it lacks a node type, tool, provider or secret that they need, or
processes ended while they executed them (poisoned). It says what to do.

--stuck lists, the oldest first, the runs that have something to do and that nothing
advances for --idle: no live process owns them, and with "runner: temporal" no workflow or
no worker takes them. Runs that wait for people, events or a later timer are not stuck.
Sessions follow in which a message waits and no process starts a round with it.`,
		Example: `  weir runs --status paused
  weir runs --parent 01kafw
  weir runs --flow invoice-review --json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.runs(c.Context(), o) },
	}
	c.AddCommand(p.bulkCommands()...)
	f := c.Flags()
	f.StringSliceVar(&o.status, "status", nil, "only runs with this `STATUS`; may be repeated")
	f.StringVar(&o.flow, "flow", "", "only runs of the flow with this `NAME`")
	f.StringVar(&o.user, "user", "", "only runs of this `USER`")
	f.StringVar(&o.parent, "parent", "", "only children of this `RUN`")
	f.BoolVar(&o.all, "all", false, "include child runs")
	f.BoolVar(&o.blocks, "blocked", false, "only runs that have not ended and that this program cannot continue, and why")
	f.BoolVar(&o.stuck, "stuck", false, "only runs that nothing advances, and why")
	f.DurationVar(&o.idle, "idle", time.Minute, "with --stuck, runs in which nothing has happened for this `DURATION`")
	f.IntVar(&o.limit, "limit", 20, "list at most `N`")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	_ = c.RegisterFlagCompletionFunc("parent", p.completeRuns)
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(app.RunStatuses(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *cli) runs(ctx context.Context, o *runsOptions) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	open := p.openReadOnly
	if o.stuck {
		open = p.openWithRunner
	}
	a, err := open(ctx)
	if errors.Is(err, store.ErrNotFound) { // nothing has been run yet
		if o.json {
			writeJSON(p.out, []app.RunRow{})
			return nil
		}
		p.notef("no runs yet: there is no database at %s", p.databaseName())
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // it only read
	if o.parent != "" {
		if filter.Parent, err = a.find(ctx, o.parent); err != nil {
			return err
		}
	}
	if o.blocks {
		list, err := a.blocked(ctx, filter)
		if err == nil {
			p.printBlocked(list, o.json)
		}
		return err
	}
	if o.stuck {
		list, err := a.stuck(ctx, o)
		if err == nil {
			p.printStuck(list, o.json)
		}
		return err
	}
	list, err := a.Runs(ctx, filter)
	if err != nil {
		return err
	}
	children, err := a.childCounts(ctx, list)
	if err != nil {
		return err
	}
	if o.json {
		rows := make([]app.RunRow, 0, len(list))
		for i := range list {
			row := app.RunRowOf(&list[i])
			row.Children = children[i]
			rows = append(rows, row)
		}
		writeJSON(p.out, rows)
		return nil
	}
	p.printRuns(list, children)
	return nil
}

// filter returns what the flags take.
func (o *runsOptions) filter() (store.Filter, error) {
	filter := store.Filter{Flow: o.flow, User: o.user, Limit: o.limit, Roots: !o.all && o.parent == ""}
	for _, name := range o.status {
		s, err := app.StatusNamed(name)
		if err != nil {
			return filter, err
		}
		filter.Status = append(filter.Status, s)
	}
	switch {
	case o.limit <= 0:
		return filter, usagef("--limit: expected at least 1")
	case o.all && o.parent != "":
		return filter, usagef("--all and --parent exclude each other")
	case o.stuck && (o.blocks || o.all || o.parent != "" || len(o.status) > 0):
		return filter, usagef("--stuck excludes --blocked, --all, --parent and --status")
	case o.idle < 0:
		return filter, usagef("--idle: expected a time that is not negative")
	case o.blocks && len(o.status) > 0:
		return filter, usagef("--blocked and --status exclude each other")
	}
	return filter, nil
}

// childCounts says how many children of their own runs have.
func (a *application) childCounts(ctx context.Context, list []store.Run) ([]int, error) {
	out := make([]int, len(list))
	for i := range list {
		below, err := a.Runs(ctx, store.Filter{Parent: list[i].ID, Limit: history.MaxChildren})
		if err != nil {
			return nil, err
		}
		out[i] = len(below)
	}
	return out, nil
}

func (p *cli) printRuns(list []store.Run, children []int) {
	if len(list) == 0 {
		p.notef("no runs")
		return
	}
	now := time.Now()
	t := p.table("RUN STATUS FLOW STARTED TOOK TOKENS CHILDREN ORIGIN NOTE", "ORIGIN", "CHILDREN", "TOOK", "TOKENS", "STARTED")
	for i := range list {
		r, below := &list[i], "-"
		if children[i] > 0 {
			below = fmt.Sprint(children[i])
		}
		t.row(r.ID, p.statusOr(r.Head.Status, app.IsInterrupted(r)), app.Printable(r.Flow), ago(now.Sub(r.Created)), took(r.Updated.Sub(r.Created)),
			tokens(r.Head.Usage), below, textOrDash(shorten(r.Origin, 24)), runNote(r))
	}
	t.print()
}

// runNote says what a run waits for or why it failed.
func runNote(r *store.Run) string {
	if len(r.Head.Waiting) > 0 {
		return shorten(describe(r.Head.Waiting[0]), 48)
	}
	if r.Head.Error != nil {
		return topLine(r.Head.Error.Error())
	}
	if app.IsInterrupted(r) {
		return "no process executes it: " + engine.CommandLine("resume", r.ID)
	}
	return ""
}

// stoppedHint says that no process executes a run, and how it is continued.
func stoppedHint(r *store.Run, resume string) string {
	if r.Crashes >= runner.MaxCrashes {
		return fmt.Sprintf("The run is set aside (poisoned): %d processes in a row ended while they executed it. Continue it with: %s", r.Crashes, resume)
	}
	return "No process is executing this run. Continue it with: " + resume
}

// statusOr returns a status in its colour, or "stopped" for a run that no process executes.
func (p *cli) statusOr(s engine.Status, stopped bool) string {
	if stopped {
		return p.styleFor(p.out).ask.Render("stopped")
	}
	return p.status(s)
}

// status returns a status in its colour.
func (p *cli) status(s engine.Status) string {
	st := p.styleFor(p.out)
	switch s {
	case engine.Completed:
		return st.good.Render(s.String())
	case engine.Failed, engine.Cancelled:
		return st.bad.Render(s.String())
	case engine.Paused, engine.Waiting:
		return st.ask.Render(s.String())
	case engine.Running:
		return st.busy.Render(s.String())
	default:
		return st.dim.Render(s.String())
	}
}

// tokens returns what was used, in and out.
func tokens(u engine.Usage) string {
	if u.Input+u.Output == 0 {
		return "-"
	}
	return approx(u, fmt.Sprintf("%d", u.Input+u.Output))
}

// ago returns how long something is past, in one unit.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// took returns a duration with the precision that people care for.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", max(d.Microseconds(), 0))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
