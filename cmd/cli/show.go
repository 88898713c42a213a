package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

type showOptions struct {
	node string
	at   int64
	view bool
	json bool
	// chain shows the chain of work, diff what one node changed in the state.
	chain, diff bool
	limit       rowLimit
}

func (p *cli) showCommand() *cobra.Command {
	o := &showOptions{}
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: its nodes, contexts and state, now or at an event",
		Long: `Show a run and the tree of its child runs, from the journal.

  --node          one node in full: inputs, effects, messages and outputs. A node of a
                  child run is named from the root: review>ask is ask in the child of review
  --node --view   the exact messages of each model call of the node, what was left out,
                  and why
  --node --diff   what the node changed in the state
  --chain         the chain of work: each attempt of a node with its steps, their time and
                  cost; with --json also the state before and after
  --at            everything as it was after that event; --events lists events

Of more than --limit nodes, contexts or attempts, those that did not complete are listed
first; a line says how many were left out. With --json and --events nothing is left out.`,
		Example: `  weir show 01kafw
  weir show 01kafw --node 'talk#2/answer'
  weir show 01kafw --node 'talk#2/answer' --view
  weir show 01kafw --chain
  weir show 01kafw --node extract --diff
  weir show 01kafw --at 12 --json`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
	}
	f := c.Flags()
	var events bool
	f.StringVar(&o.node, "node", "", "the node at this `PATH`, in full")
	f.Int64Var(&o.at, "at", 0, "show the run as of `EVENT`, a number from 1")
	f.BoolVar(&o.view, "view", false, "with --node: the messages of each model call, what was left out, and why")
	f.BoolVar(&o.chain, "chain", false, "the chain of work: attempts and steps; with --node only of that node")
	f.BoolVar(&o.diff, "diff", false, "with --node: what its newest attempt changed in the state")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.BoolVar(&events, "events", false, "print the events, one JSON object per line")
	o.limit.addTo(f, "nodes, contexts, attempts, and steps of an attempt")
	_ = c.RegisterFlagCompletionFunc("node", p.completeTreePaths)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.at < 0 || o.at == 0 && c.Flags().Changed("at") {
			return usagef("--at: events are numbered from 1")
		}
		if events && o.node != "" {
			return usagef("--events and --node exclude each other: --events prints those of the whole run")
		}
		if o.view && (o.node == "" || o.at > 0) {
			return usagef("--view needs --node, shows the newest attempt of the node, and excludes --at")
		}
		if c.Flags().Changed("limit") && (o.json || events || o.node != "" && !o.chain) {
			return usagef("--limit is for the lists of nodes and of the chain: it excludes --json, --events and --node without --chain")
		}
		if err := cmp.Or(o.limit.check(), o.fits(events)); err != nil {
			return err
		}
		return p.show(c.Context(), args[0], o, events)
	}
	return c
}

// fits checks what --chain and --diff go with.
func (o *showOptions) fits(events bool) error {
	switch {
	case o.diff && (o.node == "" || o.view):
		return usagef("--diff needs --node, and excludes --view")
	case (o.chain || o.diff) && (o.at > 0 || events || o.view):
		return usagef("--chain and --diff show the whole run, and exclude --at, --events and --view")
	}
	return nil
}

func (p *cli) show(ctx context.Context, prefix string, o *showOptions, events bool) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // it only read
	id, err := a.find(ctx, prefix)
	if err != nil {
		return err
	}
	if id, err = p.enterChildRun(ctx, a, id, o); err != nil {
		return err
	}
	switch {
	case o.chain || o.diff:
		return p.showChain(ctx, a, id, o)
	case events:
		return p.showEvents(ctx, a, id, o.at)
	}
	v, err := a.Inspect(ctx, id, o.at)
	if err != nil {
		return err
	}
	switch {
	case o.at > v.Run.Events():
		return usagef("--at %d: run %s has %s", o.at, id, count(v.Run.Events(), "event"))
	case v.Run.Start == nil:
		return fmt.Errorf("run %s was created and never started; start it again", id)
	case o.view:
		return p.showView(ctx, a, v, o)
	case o.node != "":
		return p.showNode(ctx, a, v, o)
	case o.json:
		s, err := app.RunDetailsOf(ctx, a.Store, v)
		if err != nil {
			return err
		}
		writeJSON(p.out, s)
	default:
		return p.showRun(ctx, a, v, o)
	}
	return nil
}

// showRun shows a run for people, as it is now or was at an event.
func (p *cli) showRun(ctx context.Context, a *application, v *runner.RunView, o *showOptions) error {
	now := o.at == 0
	above := ""
	if parent := v.Run.Start.Parent; parent != "" {
		node, err := history.ParentNode(ctx, a.Store, v.Run.ID, parent)
		if err != nil {
			return err
		}
		if above = "child of " + parent; node != "" {
			above += " at " + node
		}
	}
	row, err := a.Store.Run(ctx, v.Run.ID)
	if err != nil {
		return err
	}
	p.printRun(v, above, now && app.IsInterrupted(&row), o.limit)
	if len(v.Inferred) > 0 {
		p.notef("the record has no description of the node types %s, and this program lacks them: the ports of their nodes are inferred from the edges", strings.Join(v.Inferred, ", "))
	}
	if !now {
		return nil
	}
	children, err := app.ChildRunsOf(ctx, a.Store, v.Run.ID, v.Commits)
	if err != nil {
		return err
	}
	p.printChildren(children)
	if app.IsInterrupted(&row) {
		p.notef("%s", stoppedHint(&row, p.commandLine("resume", row.ID)))
	}
	return nil
}

// showEvents prints the events of a run, up to number at where that is not 0. It
// needs the journal alone.
func (p *cli) showEvents(ctx context.Context, a *application, id string, at int64) error {
	w := &eventPrinter{out: p.out}
	last := int64(0)
	for c, err := range a.Store.Commits(ctx, id, 0) {
		if err != nil {
			return err
		}
		for i, e := range c.Events {
			if last = c.First + int64(i); at > 0 && last > at {
				return nil
			}
			if err := w.print(runner.Item{Run: id, Number: last, At: c.When(i), Event: e}); err != nil {
				return err
			}
		}
	}
	switch {
	case last == 0:
		return fmt.Errorf("run %s was created and never started; start it again", id)
	case at > last:
		return usagef("--at %d: run %s has %s", at, id, count(last, "event"))
	}
	return nil
}

// printRun is a run for people; above says whose child it is, "" of none.
func (p *cli) printRun(v *runner.RunView, above string, stopped bool, limit rowLimit) {
	r, st := v.Run, p.styleFor(p.out)
	first := time.UnixMilli(history.StartedAt(v))
	fmt.Fprintf(p.out, "%s  %s  %s\n", st.bold.Render(r.ID), app.Printable(r.Start.Flow), p.statusOr(r.Status(), stopped))
	line := fmt.Sprintf("started %s by %s, %s, %s", first.Format("2006-01-02 15:04:05"), textOrDash(app.Printable(r.Start.Origin)),
		took(time.UnixMilli(r.Now()).Sub(first)), count(r.Events(), "event"))
	if u := r.Usage(); u.Calls > 0 {
		line += fmt.Sprintf(", %s, %s", count(u.Calls, "model call"), usageText(u))
	}
	p.printf("%s", st.dim.Render(line))
	if above != "" {
		fmt.Fprintln(p.out, st.dim.Render(above))
	}
	if s := r.Start; s.Session != "" {
		fmt.Fprintln(p.out, st.dim.Render(fmt.Sprintf("round %d of session %s", s.Round, s.Session)))
	}
	if f := r.Forked(); f != nil {
		p.printf("%s", st.dim.Render(forkLine(f, r.SharedUsage())))
	}
	if e := r.Failure(); e != nil {
		p.printf("%s", st.bad.Render(app.Printable(e.Error())))
	}
	for _, i := range r.Interrupts() {
		p.printf("%s %s", st.ask.Render("waits for"), app.Printable(describe(i)))
	}
	fmt.Fprintln(p.out)
	all := p.commandLine("show", r.ID, "--limit", "0")
	p.printNodes(history.NewTimeline(v), limit, all, stopped)
	p.printContexts(v, limit, all)
	if s := r.State(); s.Len() > 0 {
		fmt.Fprintln(p.out)
		t := p.table("STATE VALUE")
		for _, k := range s.Keys() {
			x, _ := s.Get(k)
			t.row(app.Printable(k), shorten(plain(x), 100))
		}
		t.print()
	}
	if out := r.Outputs(); len(out) > 0 {
		fmt.Fprintln(p.out)
		t := p.table("OUTPUT VALUE")
		for _, o := range out {
			t.row(o.Name, shorten(plain(o.Value), 100))
		}
		t.print()
	}
	for _, a := range r.Absent() {
		fmt.Fprintf(p.out, "\nOutput %s is absent: %s\n", a.Name, plain(a.Value))
	}
	p.printPartial(v)
}

// printPartial shows the answers that were cut off when their nodes were cancelled or the process stopped.
func (p *cli) printPartial(v *runner.RunView) {
	list := history.CutOffs(v)
	if len(list) == 0 {
		return
	}
	t := p.table("CUT_OFF PARTIAL_ANSWER")
	for _, c := range list {
		t.row(c.Node, shorten(c.Text, 100))
	}
	fmt.Fprintln(p.out)
	t.print()
}

func (p *cli) printNodes(c *history.Timeline, limit rowLimit, all string, stopped bool) {
	t := p.table("NODE TYPE STATUS TRIES TIME RESULT", "TYPE", "TRIES", "TIME")
	chosen := limit.choose(len(c.Order), func(i int) bool { return isOpenOrFailed(c.Nodes[c.Order[i]].Status) })
	for _, i := range chosen {
		path := c.Order[i]
		n := c.Nodes[path]
		tries, time := "-", "-"
		if n.Attempts > 0 {
			tries = fmt.Sprint(n.Attempts)
		}
		if d := n.Duration(); d > 0 {
			time = micros(d)
		}
		status := p.statusOr(n.Status, stopped && n.Status == engine.Running)
		if n.Cached {
			status += " cached"
		}
		t.row(strings.Repeat("  ", strings.Count(path, "/"))+path, n.Type, status, tries, time, outcomeOf(n))
	}
	t.print()
	limit.note(p.out, len(chosen), len(c.Order), "node", all)
}

// isOpenOrFailed reports whether a node has run and has not completed.
func isOpenOrFailed(s engine.Status) bool {
	return s != engine.Completed && s != engine.Skipped && s != engine.Pending
}

// outcomeOf returns the outputs of a node, shortened to a part of a line, or its error.
func outcomeOf(n *history.NodeRecord) string {
	if n.Error != nil && n.Status == engine.Failed {
		return topLine(n.Error.Message) + " (" + n.Error.Code + ")"
	}
	return shorten(summaryOf(n.Outputs), 70)
}

func (p *cli) printContexts(v *runner.RunView, limit rowLimit, all string) {
	fmt.Fprintln(p.out)
	t := p.table("CONTEXT KIND MESSAGES MODEL")
	ids := slices.Sorted(maps.Keys(v.Contexts))
	chosen := limit.choose(len(ids), func(i int) bool { return ids[i] == "main" })
	for _, i := range chosen {
		id := ids[i]
		c := v.Contexts[id]
		name := id
		if c.Label != "" {
			name += " " + app.Printable(c.Label)
		}
		t.row(name, string(c.Kind), fmt.Sprint(c.History.Len()), app.ModelOf(c.Settings))
	}
	t.print()
	limit.note(p.out, len(chosen), len(ids), "context", all)
}

func micros(us int64) string { return took(time.Duration(us) * time.Microsecond) }
