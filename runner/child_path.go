package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
)

// ChildAt returns the newest child run that the node at a path of a run has started, with the interrupt that the node
// waits for; Child is nil if there is none. The path must not lead into a child. For a node that starts several children,
// the path may be what precedes the ">" in the ids of the questions of one, such as "ask:tool2#1".
func (l *Local) ChildAt(ctx context.Context, run, path string) (engine.Interrupt, error) {
	var newest engine.Interrupt
	for c, err := range l.store.Commits(ctx, run, 0) {
		if err != nil {
			return newest, fmt.Errorf("read run %s: %w", run, err)
		}
		for _, e := range c.Events {
			w, ok := e.(*engine.NodeWaiting)
			if !ok {
				continue
			}
			for _, i := range w.Interrupts {
				if i.Child != nil && (w.Path == path || engine.BelowChild(i.ID, "") == path+">") {
					newest = i
				}
			}
		}
	}
	return newest, nil
}

// DoAt carries out a command on the node at a path, which leads into child runs as "PATH>NODE", and returns the
// execution of the given run. at returns the command for the node's path in its own run. A run that failed because of
// its child continues when the child has completed. DoAt waits for that, or for the child to pause or fail.
func (l *Local) DoAt(ctx context.Context, p *Program, id, path string, at func(path string) Command) (*Execution, error) {
	above, below, ok := strings.Cut(path, ">")
	if !ok {
		return l.Do(ctx, p, id, at(path))
	}
	i, err := l.ChildAt(ctx, id, above)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("run %s: node %s cannot be changed", id, path)
	if i.Child == nil {
		return nil, &Refusal{What: what, Why: fmt.Sprintf("node %s has started no child run", above), Instead: "`" + engine.CommandLine("show", id) + "` lists them"}
	}
	v, err := l.Inspect(ctx, p, id, 0)
	if err != nil {
		return nil, err
	}
	if !v.Run.AwaitsChild(i.ID) {
		return nil, &Refusal{
			What: what, Instead: endedHint(id),
			Why: fmt.Sprintf("run %s is %s, and its node %s (%s) does not wait for the child run %s", id, v.Run.Status(), above, v.Run.StatusOf(above), i.Child.Run),
		}
	}
	failed := v.Run.Status() == engine.Failed
	return l.passToChild(ctx, p, id, i.Child.Fingerprint, func(cp *Program) (*Execution, error) {
		x, err := l.DoAt(ctx, cp, i.Child.Run, below, at)
		if err != nil || !failed {
			return x, err
		}
		_, err = x.Wait(ctx)
		return x, err
	}, i.Child.Run)
}
