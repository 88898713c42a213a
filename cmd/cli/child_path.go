package cli

import (
	"context"
	"strings"
)

// enterChildRun finds the run that --node is about, and leaves in o the path in that run.
func (p *cli) enterChildRun(ctx context.Context, a *application, id string, o *showOptions) (string, error) {
	child, below, err := p.resolvePath(ctx, a, id, o.node)
	if err == nil && child != id && o.at > 0 {
		above := o.node[:strings.LastIndexByte(o.node, '>')]
		err = usagef("--at: each run numbers its own events; the run of node %q is %s", above, child)
	}
	o.node = below
	return child, err
}

// resolvePath finds the run that a path leads into, and the path in that run:
// review>ask is the node ask in the newest child of the node review.
func (p *cli) resolvePath(ctx context.Context, a *application, id, path string) (run, below string, err error) {
	for {
		above, below, ok := strings.Cut(path, ">")
		if !ok {
			return id, path, nil
		}
		child, err := a.ChildAt(ctx, id, above)
		if err != nil {
			return "", "", err
		}
		if child == "" {
			return "", "", usagef("node %q of run %s has started no child run; `%s` lists them", above, id, p.commandLine("show", id))
		}
		id, path = child, below
	}
}
