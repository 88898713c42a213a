package weir

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
)

// pinDependencies pins the tools that the flow names and this process offers, and those of the
// flows that it uses. Tools that a value names during the run are not known in advance and are
// not pinned.
func (w *Weir) pinDependencies(p *runner.Program) {
	for _, f := range p.Flow.Dependencies() {
		names, all := runner.ToolNames(&f.Graph)
		if all {
			names = w.tools.Names()
		}
		for _, name := range names {
			if t := w.tools.Get(name); t != nil {
				p.Pinned[runner.ToolPin(name)] = t.Hash()[:32]
			}
		}
	}
}

// checkBranchTools refuses tools in the branches of races if they may change something outside
// the run: the change would remain if another branch won.
func (w *Weir) checkBranchTools(f *Flow) error {
	var problems []flow.Problem
	for _, used := range f.Dependencies() {
		for _, b := range runner.BranchTools(&used.Graph) {
			for _, name := range b.Names {
				if what := w.toolActs(name); what != "" {
					problems = append(problems, flow.Problem{
						Pos: b.Node.Pos, Code: engine.CodeRaceEffect,
						Message: fmt.Sprintf("the tool %s, which a branch of %s names, %s; what it changes stays changed if another branch wins", name, b.Node.ID, what),
						Hint:    "use only read-only tools in branches, or set " + flow.AllowEffects + ": true",
					})
				}
			}
		}
	}
	if problems != nil {
		return &flow.Invalid{Problems: problems}
	}
	return nil
}

// toolActs says why calls of a tool may change something outside the run; "" if they cannot.
func (w *Weir) toolActs(name string) string {
	t := w.tools.Get(name)
	switch {
	case t == nil:
		return ""
	case t.Flow != "":
		if path := flow.ActsOutside(w.toolFlows[t.Name].Flow, w.catalogue); path != "" {
			return "runs a flow whose node " + path + " may act outside the run"
		}
		return ""
	case !t.ReadOnly:
		return "is not read-only"
	}
	return ""
}
