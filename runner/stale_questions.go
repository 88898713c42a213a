package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// askingRunsOf returns the child runs that a run waits for, by Prefix.
func askingRunsOf(r *engine.Run) map[string]string {
	if r.Status() != engine.Paused {
		return nil
	}
	out := make(map[string]string)
	for _, c := range r.OpenChildren() {
		out[c.Prefix()] = c.Start.Run
	}
	return out
}

// AllOpen reports whether the record has all questions of the result of an ended execution as
// open. That of a child run is open while the child waits for it: a child reports an answer to
// its parent after it has recorded it.
func (x *Execution) AllOpen(ctx context.Context) (bool, error) {
	result, err := x.Wait(ctx)
	if err != nil {
		return false, err
	}
	for _, q := range result.Interrupts {
		open, err := x.local.isOpen(ctx, x.ID, q.ID)
		above, below, ofChild := strings.Cut(q.ID, ">")
		if child := x.askingRuns[above]; open && ofChild && child != "" {
			open, err = x.local.isOpen(ctx, child, below)
		}
		if err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

// Rejoin is Resume for a run of which a child has continued elsewhere: the run joins its children
// again, although it has not changed itself. An execution that is here joins the named child.
func (l *Local) Rejoin(ctx context.Context, p *Program, id, child string) (*Execution, error) {
	for {
		x, fresh, err := l.getOrLoad(ctx, p, id, loadAny, func(x *Execution) error {
			x.m.checkChildren, x.m.unchangedSinceRelease = true, false
			return nil
		})
		if err != nil || fresh || child == "" {
			return x, err
		}
		if err = x.Do(ctx, x.recheckChild(child)); !errors.Is(err, ErrEnded) {
			return x, err
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// continueForChildren continues a run that has just been released because it waits for people, if a child has asked for
// that meanwhile: the process of the child saw that the run has an owner, which can no longer read the message.
func (l *Local) continueForChildren(x *Execution) {
	posts, err := l.store.Inbox(l.ctx, x.ID)
	for i := range posts {
		if err != nil || posts[i].Kind != "child" {
			continue
		}
		if _, err = l.Rejoin(l.ctx, x.m.program, x.ID, posts[i].Name); err == nil {
			err = l.store.RemovePosts(l.ctx, []int64{posts[i].ID})
		}
	}
	if err != nil && !errors.Is(err, store.ErrOwned) && !errors.Is(err, ErrClosed) && !errors.Is(err, store.ErrNotFound) && l.ctx.Err() == nil {
		l.o.Logger.Warn("continue for a child run", "run", x.ID, "error", err)
	}
}

// OpenQuestions reports whether the record has all questions as open for which a run waits by its row. That of a child run
// may be answered: see Execution.AllOpen.
func (l *Local) OpenQuestions(ctx context.Context, run string) (bool, error) {
	row, err := l.store.Run(ctx, run)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", run, err)
	}
	for _, q := range row.Head.Waiting {
		if open, err := l.isOpen(ctx, run, q.ID); err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

// isOpen reports whether a run waits for a question, by its row.
func (l *Local) isOpen(ctx context.Context, run, question string) (bool, error) {
	row, err := l.store.Run(ctx, run)
	if err != nil || row.Head.Status != engine.Paused || !slices.ContainsFunc(row.Head.Waiting, func(i engine.Interrupt) bool { return i.ID == question }) {
		return false, err
	}
	above, below, ofChild := strings.Cut(question, ">")
	if !ofChild {
		return true, nil
	}
	i, err := l.ChildAt(ctx, run, above)
	if err != nil || i.Child == nil { // the child of one of several calls of tools
		return true, err
	}
	return l.isOpen(ctx, i.Child.Run, below)
}
