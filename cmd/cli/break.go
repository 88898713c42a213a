package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// checkBreaks refuses breakpoints at nodes that the flow does not have.
func checkBreaks(f *weir.Flow, breaks []string) error {
	ids := nodeIDs(nil, &f.Graph)
	for _, b := range breaks {
		if above, _, ok := strings.Cut(b, ">"); ok && slices.Contains(ids, above) {
			return usagef("--break %s is in a child run: write interruptBefore: true at the node, in the flow that %s runs", b, above)
		}
		if !slices.Contains(ids, b) {
			return usagef("--break: flow %s has no node %q%s", f.Name, b, didYouMean(b, ids))
		}
	}
	return nil
}

// nodeIDs returns the ids of all nodes of a graph, inner ones too.
func nodeIDs(ids []string, g *flow.Graph) []string {
	for _, n := range g.Nodes {
		ids = append(ids, n.ID)
		if n.Body != nil {
			ids = nodeIDs(ids, n.Body)
		}
	}
	return ids
}

// completeBreaks offers all nodes of the flow file on the command line.
func (p *cli) completeBreaks(_ *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	f := p.loadFirst(args)
	if f == nil {
		return nil, noFiles
	}
	return nodeIDs(nil, &f.Graph), noFiles
}

// completeRunNodes offers all nodes of the flow of the run on the command line.
func (p *cli) completeRunNodes(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	f := p.flowOfFirst(c, args)
	if f == nil {
		return nil, noFiles
	}
	return nodeIDs(nil, &f.Graph), noFiles
}

// completeRunInputs offers the inputs of the flow of the run on the command line.
func (p *cli) completeRunInputs(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	f := p.flowOfFirst(c, args)
	if f == nil {
		return nil, noFiles
	}
	var out completions
	for _, in := range f.Inputs {
		out = append(out, cobra.CompletionWithDesc(in.Name+"=", string(in.Type)))
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// flowOfFirst returns the flow of the run on the command line, nil if it cannot be
// had.
func (p *cli) flowOfFirst(c *cobra.Command, args []string) *weir.Flow {
	if len(args) == 0 {
		return nil
	}
	a, id, err := p.openRun(contextOf(c), args[0], app.Options{})
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	f, err := a.FlowOf(contextOf(c), id)
	if err != nil {
		return nil
	}
	return f
}

// resumePastBreakpoints resumes a run, past the breakpoints that it waits at.
func (p *cli) resumePastBreakpoints(ctx context.Context, a *application, id string, v *runner.RunView) (*weir.Run, error) {
	var run *weir.Run
	if v.Run.Status() == engine.Paused {
		for _, i := range v.Run.Interrupts() {
			if i.Kind != engine.AwaitBreak {
				continue
			}
			on, err := a.Answer(ctx, id, i.ID, nil, p.userName())
			if err != nil && !errors.Is(err, runner.ErrNoInterrupt) && !errors.Is(err, store.ErrOwned) {
				return nil, err
			}
			if err == nil {
				run = on
			}
		}
	}
	if run != nil {
		return run, nil
	}
	return a.Resume(ctx, id)
}
