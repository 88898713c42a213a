package history

import (
	"cmp"
	"context"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// ChildRun is a run in the tree below another run.
type ChildRun struct {
	Row store.Run
	// Node is the path of the node, in the run above, that started this run; "" if a model
	// called the flow as a tool.
	Node string
	// Isolation is that of the node: fresh, fork or share; "" for a call of a tool.
	Isolation string
	Children  []ChildRun
}

// TreeStore is the part of a store that reading a tree of runs needs.
type TreeStore interface {
	store.Journal
	store.Listings
}

// MaxChildren is how many children of one run are read at most.
const MaxChildren = 10_000

// ChildTree returns the child runs of a run and those below them, in the order in which
// nodes started them, followed by calls of tools. commits are the journal of the run, nil
// if it has not been read yet.
func ChildTree(ctx context.Context, s TreeStore, run string, commits []engine.Commit) ([]ChildRun, error) {
	rows, err := s.Runs(ctx, store.Filter{Parent: run, Limit: MaxChildren})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if commits == nil {
		for c, err := range s.Commits(ctx, run, 0) {
			if err != nil {
				return nil, err
			}
			commits = append(commits, c)
		}
	}
	started := childInterrupts(commits)
	place := func(r store.Run) int {
		if i := slices.IndexFunc(started, func(i engine.Interrupt) bool { return i.Child.Run == r.ID }); i >= 0 {
			return i
		}
		return len(started)
	}
	slices.Reverse(rows) // they are listed newest first
	slices.SortStableFunc(rows, func(a, b store.Run) int { return place(a) - place(b) })
	out := make([]ChildRun, 0, len(rows))
	for _, r := range rows {
		c := ChildRun{Row: r}
		if i := place(r); i < len(started) {
			c.Node, c.Isolation = NodeOfInterrupt(started[i].ID), cmp.Or(started[i].Child.Isolation, "fresh")
		}
		if c.Children, err = ChildTree(ctx, s, r.ID, nil); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// childInterrupts returns the interrupts with which a journal started child runs, in order.
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

// ParentNode returns the path of the node, in the run parent, that started the child run;
// "" if a tool call of an earlier version started it.
func ParentNode(ctx context.Context, s store.Journal, run, parent string) (node string, err error) {
	for c, err := range s.Commits(ctx, parent, 0) {
		if err != nil {
			return "", err
		}
		for _, i := range childInterrupts([]engine.Commit{c}) {
			if i.Child.Run == run {
				return NodeOfInterrupt(i.ID), nil
			}
		}
	}
	return "", nil
}
