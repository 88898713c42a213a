package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

// forkOptions are the flags of `weir fork` that other commands do not share.
type forkOptions struct {
	from   string
	at     int64
	inputs []string
	file   string
	state  []string
	flow   string
	model  string
	id     string
	breaks []string
	dryRun bool
}

func (p *cli) forkCommand() *cobra.Command {
	o, d := &forkOptions{}, &runDriver{p: p}
	c := &cobra.Command{
		Use:   "fork RUN",
		Short: "Create a run that shares the past of another, and continue from there",
		Long: `Create a run that shares the past of another run up to a point and continues from there,
with other inputs, another state or a changed flow. Nothing of the past is copied or
repeated. The other run is not changed; it may have ended, failed, be waiting or be
running. The command first lists what is reused and what runs again.

Where the shared past ends:
  --from NODE   before the first start of that node (refine#2/draft: in the second
                iteration of refine)
  --at EVENT    with that event; "weir show RUN --events" lists events. If the run had
                failed or ended by then, with the last event before that
  neither       before the first start of a node that differs in --flow or reads an
                input that -i changes

Nodes that were executing at that point start again; open questions stay open. Usage and
budgets of the new run count only what it spends itself.`,
		Example: `  weir fork 01kafw --from reply
  weir fork 01kafw --from reply --state amount=1200
  weir fork 01kafw -i invoice=@other.txt
  weir fork 01kafw --flow review-2.yaml --dry-run
  weir fork 01kafw --at 12 --break reply --json`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("at") && o.at < 1 {
				return usagef("--at: events are numbered from 1")
			}
			return p.fork(c.Context(), args[0], o, d)
		},
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "", "share the past before the first start of this `NODE`")
	f.Int64Var(&o.at, "at", 0, "share the past up to this `EVENT`, a number from 1")
	f.StringArrayVarP(&o.inputs, "input", "i", nil, "a changed input, `NAME=VALUE`; may be repeated")
	f.StringVar(&o.file, "inputs", "", "changed inputs from a YAML or JSON `FILE`; -i overrides them")
	f.StringArrayVar(&o.state, "state", nil, "a state key at that point, `KEY=VALUE`, JSON or text; may be repeated")
	f.StringVar(&o.flow, "flow", "", "continue with this flow `FILE`")
	f.StringVar(&o.model, "model", "", "use `PROVIDER/MODEL` in the new run")
	f.StringVar(&o.id, "id", "", "the `ID` of the new run; an existing fork with this id is joined")
	f.StringSliceVar(&o.breaks, "break", nil, "pause before this `NODE`; may be repeated")
	f.BoolVar(&o.dryRun, "dry-run", false, "only list what is reused and what would run")
	d.flags(c)
	_ = c.RegisterFlagCompletionFunc("from", p.completeNodePaths)
	_ = c.RegisterFlagCompletionFunc("break", p.completeRunNodes)
	_ = c.RegisterFlagCompletionFunc("input", p.completeRunInputs)
	_ = c.RegisterFlagCompletionFunc("flow", p.completeFiles)
	return c
}

func (p *cli) fork(ctx context.Context, prefix string, o *forkOptions, d *runDriver) error {
	var changed *weir.Flow
	what := app.Options{Record: d.record, Replay: d.replay, Run: prefix}
	if o.flow != "" {
		f, err := p.loadFlow(o.flow)
		if err != nil {
			return err
		}
		changed, what.Flow, what.Run = f, f, ""
	}
	a, id, err := p.openRun(ctx, prefix, what)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // drive has closed it where that matters
	plan, err := p.planFork(ctx, a, id, changed, o, d)
	if err != nil {
		return err
	}
	details := forkDetailsOf(plan)
	if o.dryRun {
		if p.json {
			writeJSON(p.out, struct {
				Fork *forkDetails `json:"fork"`
			}{details})
			return nil
		}
		p.printFork(p.out, plan)
		return nil
	}
	if !p.json && !d.events {
		p.printFork(p.err, plan)
	}
	run, err := plan.Start(ctx)
	if err != nil {
		return err
	}
	d.forked = details
	return d.drive(ctx, a, run, position{number: plan.At})
}

// planFork reads what is to be different and finds out what it comes to.
func (p *cli) planFork(ctx context.Context, a *application, id string, changed *weir.Flow, o *forkOptions, d *runDriver) (*weir.ForkPlan, error) {
	f := changed
	if f == nil {
		var err error
		if f, err = a.FlowOf(ctx, id); err != nil {
			return nil, err
		}
	}
	w := weir.ForkOptions{
		ID: o.id, From: o.from, At: o.at, Flow: changed, Model: o.model, Breaks: o.breaks, By: p.userName(), Origin: "fork",
	}
	if err := p.checkFromChild(ctx, a, id, o.from); err != nil {
		return nil, err
	}
	if err := checkNodeFlags(f, o); err != nil {
		return nil, err
	}
	var err error
	if w.Inputs, err = p.changedInputs(f, o.file, o.inputs); err != nil {
		return nil, err
	}
	if w.State, err = p.assignments("--state ", o.state); err != nil {
		return nil, err
	}
	if changed != nil && w.Model == "" && strings.HasPrefix(changed.Context.Model, app.ScriptProvider+"/") {
		was, err := a.FlowOf(ctx, id)
		if err != nil {
			return nil, err
		}
		if was.Context.Model != changed.Context.Model {
			w.Model = changed.Context.Model
		}
	}
	if w.Model, err = app.ResolveScript(w.Model, o.flow, d.replay == ""); err != nil {
		return nil, err
	}
	if o.model != "" && d.replay == "" {
		if err := a.checkModel(o.model); err != nil {
			return nil, err
		}
	}
	return a.PlanFork(ctx, id, w)
}

// checkFromChild refuses a fork from a node in a child run, which is a run of its
// own, and names the fork that can be made.
func (p *cli) checkFromChild(ctx context.Context, a *application, id, from string) error {
	above, _, ok := strings.Cut(from, ">")
	if !ok {
		return nil
	}
	child, below, err := p.resolvePath(ctx, a, id, from)
	if err != nil {
		return err
	}
	return usagef("--from %s is in a child run: fork that run (`%s`), or give --from %s to start it again",
		from, p.commandLine("fork", child, "--from", below), engine.ShellWord(above))
}

// checkNodeFlags refuses nodes that the flow does not have.
func checkNodeFlags(f *weir.Flow, o *forkOptions) error {
	if err := checkBreaks(f, o.breaks); err != nil {
		return err
	}
	if o.from == "" {
		return nil
	}
	if o.at > 0 {
		return usagef("--from and --at exclude each other: both say where the past ends")
	}
	root := history.RootNode(o.from)
	if f.Node(root) != nil {
		return nil
	}
	var ids []string
	for _, n := range f.Nodes {
		ids = append(ids, n.ID)
	}
	return usagef("--from: flow %s has no node %q%s", f.Name, root, didYouMean(root, ids))
}

// changedInputs reads inputs that are different; what is not given is as it was.
func (p *cli) changedInputs(f *weir.Flow, file string, flags []string) (map[string]any, error) {
	given, err := p.inputs(f, file, flags)
	if err != nil || len(given) > 0 {
		return given, err
	}
	return nil, nil
}

// assignments reads arguments of the form KEY=VALUE, each JSON where it is, else text. Flag
// and a blank precede them in errors.
func (p *cli) assignments(flag string, list []string) (map[string]any, error) {
	out := make(map[string]any, len(list))
	for _, arg := range list {
		key, text, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, usagef("%s%s: expected KEY=VALUE", flag, arg)
		}
		v, err := p.inputValue("any", text)
		if err != nil {
			return nil, usagef("%s%s: %w", flag, key, err)
		}
		out[key] = v
	}
	return out, nil
}

// forkDetails is what `weir fork --json` says of the past.
type forkDetails struct {
	From    string              `json:"from"`
	At      int64               `json:"at"`    // the last event that is shared
	Asked   int64               `json:"asked"` // 0 where At is what was asked for
	Reused  []string            `json:"reused"`
	Again   []forkedNodeDetails `json:"again"` // what runs again, or for the first time
	Nodes   []forkedNodeDetails `json:"nodes"`
	Removed []string            `json:"removed"`
	Shared  app.Usage           `json:"shared_usage"` // of the past; not in usage
}

type forkedNodeDetails struct {
	Node  string `json:"node"`
	Type  string `json:"type"`
	Reuse string `json:"reuse"`
	Why   string `json:"why"`
}

func forkDetailsOf(plan *weir.ForkPlan) *forkDetails {
	f := &forkDetails{
		From: plan.Run, At: plan.At, Asked: plan.RequestedAt, Reused: []string{}, Again: []forkedNodeDetails{}, Nodes: []forkedNodeDetails{},
		Removed: append([]string{}, plan.Removed...), Shared: app.UsageOf(plan.Shared),
	}
	for _, n := range plan.Nodes {
		node := forkedNodeDetails{Node: n.Path, Type: n.Type, Reuse: string(n.Reuse), Why: n.Reason}
		f.Nodes = append(f.Nodes, node)
		switch n.Reuse {
		case runner.NodeReused:
			f.Reused = append(f.Reused, n.Path)
		case runner.NodeRestarts, runner.NodeAdded:
			f.Again = append(f.Again, node)
		case runner.NodeContinues, runner.NodeNotReached:
		}
	}
	return f
}
