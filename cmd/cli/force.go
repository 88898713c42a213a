package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

// forceCommands returns a person's ways out for a node that failed, was cancelled
// with the run that failed, or waits.
func (p *cli) forceCommands() []*cobra.Command {
	retry := p.forceCommand("retry", "Run a failed or waiting node again, and continue the run",
		`Run a node again that failed, was cancelled when its run failed, or waits, and continue
the run. Completed effects of the node are not repeated. The record names who did it. A
run that was itself cancelled stays cancelled.

If a budget stopped the node (budget_exceeded), --add increases that budget first.`)
	retry.Example = "  weir retry 01kafw draft\n  weir retry 01kafw draft --add '{\"maxTokens\": 10000}'"
	skip := p.forceCommand("skip", "Skip a failed or waiting node, and continue the run",
		`Skip a node that failed, was cancelled or waits, and continue the run. Nodes that depend
only on it are skipped too.`)
	complete := p.forceCommand("complete", "Set the outputs of a failed or waiting node, and continue the run",
		`Complete a node that failed, was cancelled or waits with the given outputs, and continue
the run.`)
	complete.Example = "  weir complete 01kafw extract -o text='1250 EUR' -o value=@extract.json"
	return []*cobra.Command{retry, skip, complete}
}

func (p *cli) forceCommand(op, short, long string) *cobra.Command {
	d := &runDriver{p: p}
	var outputs []string
	var more string
	c := &cobra.Command{
		Use:   op + " RUN NODE",
		Short: short,
		Long: long + `

NODE is a path as "weir show RUN" prints it: refine#2/draft is draft in the second
iteration of refine, review>draft is draft in the child run of review. A run that failed
because of a child continues when the child has completed, or asks a person.`,
		Args:              exactArgs("RUN", "NODE"),
		ValidArgsFunction: p.completeStuck,
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			return p.driveAfter(ctx, args[0], d, func(a *application, id string, v *runner.RunView) (*weir.Run, error) {
				n, err := p.nodeAt(ctx, a, v, args[1])
				if err != nil {
					return nil, err
				}
				if c.Flags().Changed("add") {
					return p.increaseBudget(ctx, a, id, args[1], more)
				}
				values, err := p.outputValues(n, outputs)
				if err != nil {
					return nil, err
				}
				return a.OverrideNode(ctx, id, op, args[1], values, p.userName())
			})
		},
	}
	if op == "complete" {
		c.Flags().StringArrayVarP(&outputs, "output", "o", nil, "an output, `PORT=VALUE`, in the form of -i of weir run; may be repeated")
	}
	if op == "retry" {
		c.Flags().StringVar(&more, "add", "", "first add `MORE` to the budget that stopped the node: 10000 tokens, 3 calls, $0.50, or {\"maxTokens\": 10000}")
	}
	d.flags(c)
	d.acceptFlag(c)
	return c
}

// nodeAt finds the node at a path of a run, which may lead into its child runs.
func (p *cli) nodeAt(ctx context.Context, a *application, v *runner.RunView, path string) (*engine.NodePlan, error) {
	id, below, err := p.resolvePath(ctx, a, v.Run.ID, path)
	if err != nil {
		return nil, err
	}
	if id != v.Run.ID {
		if v, err = a.Inspect(ctx, id, 0); err != nil {
			return nil, err
		}
	}
	n := v.Run.Plan().Find(below)
	if n == nil {
		return nil, usagef("run %s has no node %q%s", id, below, didYouMean(below, history.NewTimeline(v).Order))
	}
	return n, nil
}

// increaseBudget adds to the budget that a node ran out of, and tries it again.
func (p *cli) increaseBudget(ctx context.Context, a *application, id, path, text string) (*weir.Run, error) {
	more, err := parseBudgetIncrease(text)
	if err != nil {
		return nil, &usageError{Err: fmt.Errorf("--add: %w", err)}
	}
	return a.IncreaseBudget(ctx, id, path, more, p.userName())
}

// outputValues reads -o flags by the types of the node's ports.
func (p *cli) outputValues(n *engine.NodePlan, flags []string) (map[string]any, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	ports := n.Spec.PortsOf(n.Def)
	out := make(map[string]any, len(flags))
	declared := make([]string, len(ports.Out))
	for i, port := range ports.Out {
		declared[i] = port.Name
	}
	for _, arg := range flags {
		name, text, ok := cutAssignment(arg, declared)
		if !ok || name == "" {
			return nil, usagef("-o %s: expected PORT=VALUE", arg)
		}
		t, known := flow.TypeAny, ports.AnyOut
		for _, port := range ports.Out {
			if port.Name == name {
				t, known = port.Type, true
			}
		}
		if !known {
			return nil, usagef("node %s (%s) has no output %q; it has %s", n.Def.ID, n.Def.Type, name, strings.Join(declared, ", "))
		}
		v, err := p.inputValue(t, text)
		if err != nil {
			return nil, usagef("output %q: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}
