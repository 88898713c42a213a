package node

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/tool"
)

// ToolChecker is a Type whose nodes call tools that their settings name.
type ToolChecker interface {
	// CheckTools reports why a node of a graph cannot work with the tools that are offered.
	// Setting is set in the problems, and Pos is not.
	CheckTools(g *flow.Graph, n *flow.Node, offered *tool.Set) []flow.Problem
}

// CheckTools compares the nodes of a flow, and of the flows that it uses, with the tools that
// a process offers. The error is a *flow.Invalid with all problems.
func CheckTools(f *flow.Flow, types *Catalogue, offered *tool.Set) error {
	var problems []flow.Problem
	for _, used := range f.Dependencies() {
		problems = append(problems, graphToolProblems(&used.Graph, types, offered)...)
	}
	if problems == nil {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b flow.Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return &flow.Invalid{Problems: problems}
}

func graphToolProblems(g *flow.Graph, types *Catalogue, offered *tool.Set) []flow.Problem {
	var out []flow.Problem
	for _, n := range g.Nodes {
		if checker, ok := types.Type(n.Type).(ToolChecker); ok {
			for _, p := range checker.CheckTools(g, n, offered) {
				p.Pos = n.PlaceOf(p.Setting)
				out = append(out, p)
			}
		}
		if n.Body != nil {
			out = append(out, graphToolProblems(n.Body, types, offered)...)
		}
	}
	return out
}
