package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/store"
)

// childRun is a run in the tree of runs, as `weir show --json` prints its
// children.
type childRun struct {
	Run string `json:"run"`
	// Node is the path of the node, in the run above, whose child the run is; ""
	// where a model called it as a tool.
	Node       string          `json:"node"`
	Flow       string          `json:"flow"`
	Status     string          `json:"status"`
	Isolation  string          `json:"isolation"`
	Micros     int64           `json:"us"`
	Usage      app.Usage       `json:"usage"` // of its own children too
	Interrupts []app.Interrupt `json:"interrupts"`
	Error      *engine.Error   `json:"error"`
	Children   []childRun      `json:"children"`

	row store.Run
}

// childrenOf returns the tree of child runs of a run; commits are its journal if that has
// been read.
func (d *application) childrenOf(ctx context.Context, id string, commits []engine.Commit) ([]childRun, error) {
	tree, err := history.ChildTree(ctx, d.Store, id, commits)
	return childRunsOf(tree), err
}

func childRunsOf(tree []history.ChildRun) []childRun {
	out := make([]childRun, 0, len(tree))
	for i := range tree {
		b := childRunOf(&tree[i].Row)
		b.Node, b.Isolation, b.Children = tree[i].Node, tree[i].Isolation, childRunsOf(tree[i].Children)
		out = append(out, b)
	}
	return out
}

func childRunOf(r *store.Run) childRun {
	return childRun{
		Run: r.ID, Flow: r.Flow, Status: r.Head.Status.String(), Micros: r.Updated.Sub(r.Created).Microseconds(),
		Usage: app.UsageOf(r.Head.Usage), Interrupts: app.InterruptsOf(r.Head.Waiting), Error: r.Head.Error,
		Children: []childRun{}, row: *r,
	}
}

// printChildren draws the children of a run, each below the one it belongs to.
func (p *cli) printChildren(children []childRun) {
	if len(children) == 0 {
		return
	}
	fmt.Fprintln(p.out)
	t := p.table("CHILD NODE FLOW STATUS TIME TOKENS COST NOTE", "TIME", "FLOW", "TOKENS", "COST")
	var rows func(list []childRun, depth int)
	rows = func(list []childRun, depth int) {
		for i := range list {
			b := &list[i]
			node, cost := b.Node, "-"
			if node == "" {
				node = "(tool)"
			}
			if b.Usage.Cost > 0 {
				cost = dollars(b.Usage.Cost)
			}
			t.row(strings.Repeat("  ", depth)+b.Run, node, app.Printable(b.Flow), p.status(b.row.Head.Status),
				took(time.Duration(b.Micros)*time.Microsecond), tokens(b.row.Head.Usage), cost, runNote(&b.row))
			rows(b.Children, depth+1)
		}
	}
	rows(children, 0)
	t.print()
}
