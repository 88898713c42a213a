package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
)

// runOptions are the flags of `weir run` beside those it shares.
type runOptions struct {
	inputs  []string
	file    string
	targets []string
	model   string
	id      string
	user    string
}

func (p *program) runCommand() *cobra.Command {
	o, d := &runOptions{}, &driving{p: p}
	c := &cobra.Command{
		Use:   "run FLOW",
		Short: "Run a flow, and go on until it ends or waits for somebody",
		Long: `Run a flow file until it ends or waits for somebody.

In a terminal, questions of the flow are asked in place. Elsewhere, and with
--no-input, --json or --events, the run pauses: answer it with "weir answer".
Stopping it with Ctrl-C keeps the run; "weir resume" goes on. A second Ctrl-C
ends the process at once, which loses nothing that was acknowledged.

Inputs are read by their declared type: text as it stands, everything else as
JSON. @FILE reads the value from a file, @- from stdin, @@ begins a text with @.`,
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
	f.StringVar(&o.file, "inputs", "", "inputs from a YAML or JSON `FILE`; -i goes over them")
	f.StringSliceVar(&o.targets, "target", nil, "run only what this `NODE` needs; may be repeated")
	f.StringVar(&o.model, "model", "", "use `PROVIDER/MODEL` in place of the flow's")
	f.StringVar(&o.id, "id", "", "give the run this `ID`; one that exists is joined, not started twice")
	f.StringVar(&o.user, "user", "", "on whose behalf the flow runs")
	d.flags(c)
	_ = c.RegisterFlagCompletionFunc("target", p.completeTargets)
	_ = c.RegisterFlagCompletionFunc("input", p.completeInputs)
	return c
}

func (p *program) run(ctx context.Context, path string, o *runOptions, d *driving) error {
	desk, err := p.open(ctx, d.record, d.replay)
	if err != nil {
		return err
	}
	defer desk.close() //nolint:errcheck // drive has closed it where that matters
	f, err := desk.Load(path)
	if err != nil {
		return &usageError{err}
	}
	start := weir.Start{ID: o.id, User: o.user, Origin: "cli", Targets: o.targets, Model: o.model}
	if start.Inputs, err = p.inputs(f, o.file, o.inputs); err != nil {
		return err
	}
	if start.Model == "" {
		start.Model = f.Context.Model
	}
	if start.Model, err = pinScript(start.Model, path, d.replay == ""); err != nil {
		return err
	}
	run, err := desk.Start(ctx, f, start)
	if err != nil {
		return err
	}
	return d.drive(ctx, desk, run, 0)
}
