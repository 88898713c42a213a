package main

import (
	"context"
	"strings"
)

// descend finds the run that --node is about, and leaves in o the path in that run.
func (p *program) descend(ctx context.Context, desk *desk, id string, o *showOptions) (string, error) {
	child, below, err := p.resolve(ctx, desk, id, o.node)
	if err == nil && child != id && o.at > 0 {
		above := o.node[:strings.LastIndexByte(o.node, '>')]
		err = usagef("--at: each run numbers its own events; the run of node %q is %s", above, child)
	}
	o.node = below
	return child, err
}

// resolve finds the run that a path leads into, and the path in that run:
// review>ask is the node ask in the newest child of the node review.
func (p *program) resolve(ctx context.Context, desk *desk, id, path string) (run, below string, err error) {
	for {
		above, below, ok := strings.Cut(path, ">")
		if !ok {
			return id, path, nil
		}
		child, err := desk.ChildAt(ctx, id, above)
		if err != nil {
			return "", "", err
		}
		if child == "" {
			return "", "", usagef("node %q of run %s has started no child run; `%s` lists them", above, id, p.self("show", id))
		}
		id, path = child, below
	}
}
