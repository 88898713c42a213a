package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// exactArgs takes these arguments and no others.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("expected %s; see `%s --help`", strings.Join(names[len(args):], " "), c.CommandPath())
		case len(args) > len(names):
			return usagef("did not expect %q; see `%s --help`", args[len(names)], c.CommandPath())
		}
		return nil
	}
}

// The completions of a shell. Where something cannot be read they offer
// nothing: a shell has no place for an error.
type completions = []cobra.Completion

const noFiles = cobra.ShellCompDirectiveNoFileComp

func (p *cli) completeFlows(c *cobra.Command, args []string, prefix string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return p.completeFiles(c, args, prefix)
}

func (p *cli) completeFiles(*cobra.Command, []string, string) (completions, cobra.ShellCompDirective) {
	return completions{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

func (p *cli) completeTypes(_ *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	cat, err := app.Catalogue()
	if err != nil || len(args) > 0 {
		return nil, noFiles
	}
	var out completions
	for _, s := range cat.Specs() {
		out = append(out, cobra.CompletionWithDesc(s.Name, s.Summary))
	}
	return out, noFiles
}

// completeTargets offers the nodes of the flow file on the command line.
func (p *cli) completeTargets(_ *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	f := p.loadFirst(args)
	if f == nil {
		return nil, noFiles
	}
	var out completions
	for _, n := range f.Nodes {
		out = append(out, cobra.CompletionWithDesc(n.ID, n.Type))
	}
	return out, noFiles
}

// completeInputs offers the inputs of the flow file on the command line.
func (p *cli) completeInputs(_ *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	f := p.loadFirst(args)
	if f == nil {
		return nil, noFiles
	}
	var out completions
	for _, in := range f.Inputs {
		out = append(out, cobra.CompletionWithDesc(in.Name+"=", string(in.Type)))
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

func (p *cli) loadFirst(args []string) *flow.Flow {
	if len(args) == 0 {
		return nil
	}
	f, err := p.loadFlow(args[0])
	if err != nil {
		return nil
	}
	return f
}

// completeRuns offers the newest runs.
func (p *cli) completeRuns(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return p.runIDs(c, store.Filter{}), noFiles
}

func (p *cli) runIDs(c *cobra.Command, f store.Filter) completions {
	a, err := p.openReadOnly(contextOf(c))
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	list, err := a.Runs(contextOf(c), f)
	if err != nil {
		return nil
	}
	var out completions
	for i := range list {
		out = append(out, cobra.CompletionWithDesc(list[i].ID, list[i].Flow+" "+list[i].Head.Status.String()))
	}
	return out
}

// completeAnswer offers paused runs, what they wait for, and the choices.
func (p *cli) completeAnswer(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.runIDs(c, store.Filter{Status: []engine.Status{engine.Paused}}), noFiles
	}
	v := p.viewForCompletion(c, args[0])
	if v == nil {
		return nil, noFiles
	}
	var out completions
	switch len(args) {
	case 1:
		for _, i := range v.Run.Interrupts() {
			out = append(out, cobra.CompletionWithDesc(i.ID, shorten(i.Prompt, 60)))
		}
	case 2:
		if i, err := openInterrupt(v.Run, args[1]); err == nil {
			out = choices(i.Schema)
		}
	}
	return out, noFiles
}

// completeStuck offers runs that have not completed, and their nodes that can
// be forced.
func (p *cli) completeStuck(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return p.runIDs(c, store.Filter{Status: []engine.Status{engine.Failed, engine.Paused, engine.Cancelled}}), noFiles
	case 1:
		return p.treePathsOf(c, args[0], func(v *runner.RunView, path string) bool { return v.Run.CanOverride(path) }), noFiles
	}
	return nil, noFiles
}

// completeNodePaths offers all nodes of the run on the command line.
func (p *cli) completeNodePaths(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, noFiles
	}
	return p.nodePaths(c, args[0], func(*runner.RunView, string) bool { return true }), noFiles
}

// completeTreePaths offers all nodes of the run on the command line, and of its
// child runs: review>ask.
func (p *cli) completeTreePaths(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, noFiles
	}
	return p.treePathsOf(c, args[0], func(*runner.RunView, string) bool { return true }), noFiles
}

func (p *cli) treePathsOf(c *cobra.Command, run string, want func(*runner.RunView, string) bool) completions {
	ctx := contextOf(c)
	a, id, err := p.openRun(ctx, run, app.Options{})
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	return a.treePaths(ctx, id, "", want)
}

// treePaths returns the nodes of a run and of its child runs that are wanted, above
// before each.
func (a *application) treePaths(ctx context.Context, run, above string, want func(*runner.RunView, string) bool) completions {
	v, err := a.Inspect(ctx, run, 0)
	if err != nil || v.Run.Start == nil {
		return nil
	}
	var out completions
	timeline := history.NewTimeline(v)
	for _, path := range timeline.Order {
		n := timeline.Nodes[path]
		if want(v, path) {
			out = append(out, cobra.CompletionWithDesc(above+path, n.Type+" "+n.Status.String()))
		}
		if child, err := a.ChildAt(ctx, run, path); err == nil && child != "" {
			out = append(out, a.treePaths(ctx, child, above+path+">", want)...)
		}
	}
	return out
}

func (p *cli) nodePaths(c *cobra.Command, run string, want func(*runner.RunView, string) bool) completions {
	v := p.viewForCompletion(c, run)
	if v == nil {
		return nil
	}
	var out completions
	timeline := history.NewTimeline(v)
	for _, path := range timeline.Order {
		if want(v, path) {
			n := timeline.Nodes[path]
			out = append(out, cobra.CompletionWithDesc(path, n.Type+" "+n.Status.String()))
		}
	}
	return out
}

// viewForCompletion returns a run as it is now, nil if it cannot be had.
func (p *cli) viewForCompletion(c *cobra.Command, prefix string) *runner.RunView {
	a, id, err := p.openRun(contextOf(c), prefix, app.Options{})
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	v, err := a.Inspect(contextOf(c), id, 0)
	if err != nil || v.Run.Start == nil {
		return nil
	}
	return v
}

// contextOf returns the command's context; a shell that completes may give none.
func contextOf(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
