package main

import (
	"context"
	"strings"

	"github.com/weir-run/weir/engine"
)

// descend finds the run that --node is about, where its path leads into child
// runs: review>ask is the node ask in the newest child of the node review. It
// leaves in o the path in that run.
func (p *program) descend(ctx context.Context, desk *desk, id string, o *showOptions) (string, error) {
	for {
		above, below, ok := strings.Cut(o.node, ">")
		if !ok {
			return id, nil
		}
		child, err := desk.childAt(ctx, id, above)
		if err != nil {
			return "", err
		}
		if child == "" {
			return "", usagef("node %q of run %s has begun no child run; `%s` lists them", above, id, p.self("show", id))
		}
		if o.at > 0 {
			return "", usagef("--at: events are numbered in each run for itself; that of node %q is %s", above, child)
		}
		id, o.node = child, below
	}
}

// childAt is the newest child run that the node at a path has begun, "" where
// there is none.
func (d *desk) childAt(ctx context.Context, run, path string) (string, error) {
	newest := ""
	for c, err := range d.store.Commits(ctx, run, 0) {
		if err != nil {
			return "", err
		}
		for _, i := range begunBy([]engine.Commit{c}) {
			if nodeOfInterrupt(i.ID) == path {
				newest = i.Child.Run
			}
		}
	}
	return newest, nil
}
