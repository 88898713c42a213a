package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// childRun is a run in the tree of runs, as `weir show --json` prints its
// children.
type childRun struct {
	Run string `json:"run"`
	// Node is the path of the node, in the run above, whose child the run is; ""
	// where a model called it as a tool.
	Node       string        `json:"node"`
	Flow       string        `json:"flow"`
	Status     string        `json:"status"`
	Isolation  string        `json:"isolation"`
	Micros     int64         `json:"us"`
	Usage      usage         `json:"usage"` // of its own children too
	Interrupts []interrupt   `json:"interrupts"`
	Error      *engine.Error `json:"error"`
	Children   []childRun    `json:"children"`

	row store.Run
}

// maxChildren bounds how many children of one run are looked up.
const maxChildren = 10_000

// childrenOf are the child runs of a run and theirs, in the order in which nodes
// began them, calls of tools last; commits are the run's journal where it has been read.
func (d *application) childrenOf(ctx context.Context, id string, commits []engine.Commit) ([]childRun, error) {
	rows, err := d.Runs(ctx, store.Filter{Parent: id, Limit: maxChildren})
	if err != nil || len(rows) == 0 {
		return []childRun{}, err
	}
	if commits == nil {
		for c, err := range d.Store.Commits(ctx, id, 0) {
			if err != nil {
				return nil, err
			}
			commits = append(commits, c)
		}
	}
	begun := childInterrupts(commits)
	place := func(r store.Run) int {
		if i := slices.IndexFunc(begun, func(i engine.Interrupt) bool { return i.Child.Run == r.ID }); i >= 0 {
			return i
		}
		return len(begun)
	}
	slices.Reverse(rows) // the newest came first
	slices.SortStableFunc(rows, func(a, b store.Run) int { return place(a) - place(b) })
	out := make([]childRun, 0, len(rows))
	for _, r := range rows {
		b := childRunOf(&r)
		if i := place(r); i < len(begun) {
			b.Node, b.Isolation = nodeOfInterrupt(begun[i].ID), cmp.Or(begun[i].Child.Isolation, "fresh")
		}
		if b.Children, err = d.childrenOf(ctx, r.ID, nil); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// childInterrupts are the interrupts that a journal began child runs with, in order.
func childInterrupts(commits []engine.Commit) []engine.Interrupt {
	var out []engine.Interrupt
	for _, c := range commits {
		for _, e := range c.Events {
			w, ok := e.(*engine.NodeWaiting)
			if !ok {
				continue
			}
			for _, i := range w.Interrupts {
				if i.Child != nil {
					out = append(out, i)
				}
			}
		}
	}
	return out
}

func childRunOf(r *store.Run) childRun {
	return childRun{
		Run: r.ID, Flow: r.Flow, Status: r.Head.Status.String(), Micros: r.Updated.Sub(r.Created).Microseconds(),
		Usage: usageReportOf(r.Head.Usage), Interrupts: interruptsOf(r.Head.Waiting), Error: r.Head.Error,
		Children: []childRun{}, row: *r,
	}
}

// parentOf says whose child a run is: the run above and the path of the node, ""
// for a call of a tool.
func (d *application) parentOf(ctx context.Context, run, parent string) (node string, err error) {
	for c, err := range d.Store.Commits(ctx, parent, 0) {
		if err != nil {
			return "", err
		}
		for _, i := range childInterrupts([]engine.Commit{c}) {
			if i.Child.Run == run {
				return nodeOfInterrupt(i.ID), nil
			}
		}
	}
	return "", nil
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
