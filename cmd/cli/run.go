package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/runner"
)

// runOptions are the flags of `weir run` that other commands do not share.
type runOptions struct {
	inputs  []string
	file    string
	targets []string
	breaks  []string
	model   string
	id      string
	user    string
}

func (p *cli) runCommand() *cobra.Command {
	o, d := &runOptions{}, &runDriver{p: p}
	c := &cobra.Command{
		Use:   "run FLOW",
		Short: "Run a flow until it ends or waits for input",
		Long: `Run a flow file until it ends or waits for input.

In a terminal, questions of the flow are asked in place. Without a terminal, and with
--no-input, --json or --events, the run pauses; answer it with "weir answer". Ctrl-C stops
the process and keeps the run; "weir resume" continues it. A second Ctrl-C ends the
process at once and loses nothing that was acknowledged.

With --break the run pauses before a node. Inspect it with "weir show", and continue it
with "weir resume", or with Enter in a terminal.

Inputs are read by their declared type: text as it is, all other types as JSON. @FILE
reads the value from a file, @- from stdin; write @@ for text that begins with @.`,
		Example: `  weir run review.yaml -i invoice="1250 EUR, ACME, 40 chairs"
  weir run review.yaml -i invoice=@invoice.txt --json --no-input
  weir run review.yaml --inputs inputs.yaml --target summary
  weir run review.yaml -i invoice=@invoice.txt --model openai/gpt-5-mini`,
		Args:              exactArgs("FLOW"),
		ValidArgsFunction: p.completeFlows,
		RunE: func(c *cobra.Command, args []string) error {
			return p.run(c.Context(), args[0], o, d)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.inputs, "input", "i", nil, "an input, `NAME=VALUE`; may be repeated")
	f.StringVar(&o.file, "inputs", "", "inputs from a YAML or JSON `FILE`; -i overrides them")
	f.StringSliceVar(&o.targets, "target", nil, "run only this `NODE` and what it needs; may be repeated")
	f.StringSliceVar(&o.breaks, "break", nil, "pause before this `NODE`; may be repeated")
	f.StringVar(&o.model, "model", "", "use `PROVIDER/MODEL` instead of the flow's model")
	f.StringVar(&o.id, "id", "", "the `ID` of the run; an existing run with this id is joined, not started again")
	f.StringVar(&o.user, "user", "", "the `USER` of the run")
	d.flags(c)
	_ = c.RegisterFlagCompletionFunc("target", p.completeTargets)
	_ = c.RegisterFlagCompletionFunc("break", p.completeBreaks)
	_ = c.RegisterFlagCompletionFunc("input", p.completeInputs)
	return c
}

// run reads all that it is given before it opens the database, so that a
// command line that is wrong makes none.
func (p *cli) run(ctx context.Context, path string, o *runOptions, d *runDriver) error {
	f, err := p.loadFlow(path)
	if err != nil {
		return err
	}
	start := weir.Start{ID: o.id, User: o.user, Origin: "cli", Targets: o.targets, Breaks: o.breaks, Model: o.model}
	if err := checkTargets(f, o.targets); err != nil {
		return err
	}
	if err := checkBreaks(f, o.breaks); err != nil {
		return err
	}
	if start.Inputs, err = p.startInputs(f, o.file, o.inputs); err != nil {
		return err
	}
	if start.Model == "" {
		start.Model = f.Context.Model
	}
	if start.Model, err = app.ResolveScript(start.Model, path, d.replay == ""); err != nil {
		return err
	}
	a, err := p.open(ctx, app.Options{Record: d.record, Replay: d.replay, Flow: f})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // drive has closed it where that matters
	if o.model != "" && d.replay == "" {
		if err := a.checkModel(o.model); err != nil {
			return err
		}
	}
	for _, notice := range runner.RunScopeNotices(f, start.User) {
		p.notef("%s", notice)
	}
	run, err := a.Start(ctx, f, start)
	if err != nil {
		return err
	}
	return d.drive(ctx, a, run, position{})
}

func checkTargets(f *weir.Flow, targets []string) error {
	var ids []string
	for _, n := range f.Nodes {
		ids = append(ids, n.ID)
	}
	for _, t := range targets {
		if !slices.Contains(ids, t) {
			return usagef("--target: flow %s has no node %q%s", f.Name, t, didYouMean(t, ids))
		}
	}
	return nil
}

// checkModel refuses a model that no provider can be asked for.
func (a *application) checkModel(model string) error {
	name, rest, ok := strings.Cut(model, "/")
	if !ok || name == "" || rest == "" {
		return usagef("--model %s: expected PROVIDER/MODEL, as openai/gpt-5-mini", model)
	}
	if !slices.Contains(a.Providers, name) {
		return usagef("--model %s: there is no provider %q%s; configured: %s. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name the server in .weir/config.yaml; see `weir doctor`",
			model, name, didYouMean(name, a.Providers), strings.Join(a.Providers, ", "))
	}
	return nil
}
