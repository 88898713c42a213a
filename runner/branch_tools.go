package runner

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/tool"
)

// CheckBranchTools refuses tools in the branches of races, of a flow and the flows that it uses, if they may change something
// outside the run: the change would remain if another branch won. flowOf returns the flow that is offered as a tool of a name, nil
// for none. Tools that are not offered are not looked at. The error is a *flow.Invalid with all problems.
func CheckBranchTools(f *flow.Flow, types flow.Catalogue, offered *tool.Set, flowOf func(name string) *flow.Flow) error {
	var problems []flow.Problem
	for _, used := range f.Dependencies() {
		for _, b := range BranchTools(&used.Graph) {
			for _, name := range b.Names {
				if what := toolActs(offered.Get(name), types, flowOf); what != "" {
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
func toolActs(t *tool.Tool, types flow.Catalogue, flowOf func(name string) *flow.Flow) string {
	if t == nil {
		return ""
	}
	if f := flowOf(t.Name); f != nil {
		if path := flow.ActsOutside(f, types); path != "" {
			return "runs a flow whose node " + path + " may act outside the run"
		}
		return ""
	}
	if !t.ReadOnly {
		return "is not read-only"
	}
	return ""
}
