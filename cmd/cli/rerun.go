package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// rerunOptions are the flags of `weir rerun` that other commands do not share.
type rerunOptions struct {
	inputs []string
	file   string
	id     string
	breaks []string
}

func (p *cli) rerunCommand() *cobra.Command {
	o, d := &rerunOptions{}, &runDriver{p: p}
	c := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Start a run again from the beginning, with the same flow, inputs and user",
		Long: `Start a new run with the flow of another run, as the flow was then, and with the same
inputs, initial state, model and user. Nothing is reused; "weir fork" reuses results.

A rerun of a fork uses the fork's inputs and flow. It does not repeat the state that
"weir fork --state" wrote in the middle of the run; the command then says so, and how to
repeat that part.`,
		Example: `  weir rerun 01kafw
  weir rerun 01kafw -i invoice=@other.txt --json`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE: func(c *cobra.Command, args []string) error {
			return p.rerun(c.Context(), args[0], o, d)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.inputs, "input", "i", nil, "a changed input, `NAME=VALUE`; may be repeated")
	f.StringVar(&o.file, "inputs", "", "changed inputs from a YAML or JSON `FILE`; -i overrides them")
	f.StringVar(&o.id, "id", "", "the `ID` of the new run; an existing run with this id is joined")
	f.StringSliceVar(&o.breaks, "break", nil, "pause before this `NODE`; may be repeated")
	d.flags(c)
	_ = c.RegisterFlagCompletionFunc("break", p.completeRunNodes)
	_ = c.RegisterFlagCompletionFunc("input", p.completeRunInputs)
	return c
}

func (p *cli) rerun(ctx context.Context, prefix string, o *rerunOptions, d *runDriver) error {
	a, id, err := p.openRun(ctx, prefix, app.Options{Record: d.record, Replay: d.replay, Run: prefix})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // drive has closed it where that matters
	f, err := a.FlowOf(ctx, id)
	if err != nil {
		return err
	}
	if err := checkBreaks(f, o.breaks); err != nil {
		return err
	}
	inputs, err := p.changedInputs(f, o.file, o.inputs)
	if err != nil {
		return err
	}
	edits, err := a.stateEdits(ctx, id)
	if err != nil {
		return err
	}
	run, err := a.Rerun(ctx, id, weir.Start{ID: o.id, Inputs: inputs, Breaks: o.breaks})
	if err != nil {
		return err
	}
	for _, e := range edits {
		p.notef("not done again: the state that fork %s was given after event %d (%s); to do that: %s", id, e.At, keysOf(e.State),
			p.commandLine(append([]string{"fork", e.From, "--at", fmt.Sprint(e.At)}, stateFlags(e.State)...)...))
	}
	return d.drive(ctx, a, run, position{})
}

// stateEdits returns the forks in a run's past that were given state of their own.
func (a *application) stateEdits(ctx context.Context, run string) ([]*engine.RunForked, error) {
	var out []*engine.RunForked
	for c, err := range a.Store.Commits(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		for _, e := range c.Events {
			if f, ok := e.(*engine.RunForked); ok && len(f.State) > 0 {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func keysOf(list []engine.StateChange) string {
	keys := make([]string, len(list))
	for i, s := range list {
		keys[i] = app.Printable(s.Key)
	}
	return strings.Join(keys, ", ")
}

// stateFlags returns the flags that write the same state.
func stateFlags(list []engine.StateChange) []string {
	var out []string
	for _, s := range list {
		if !s.Delete {
			b, _ := engine.AppendValue(nil, s.Value) // it is from a journal
			out = append(out, "--state", s.Key+"="+string(b))
		}
	}
	return out
}
