package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
	"github.com/weir-run/weir/store"
)

// superviseChildren starts what is due for the open children in the journal. Everything that it acts on is durable.
func (x *Execution) superviseChildren() {
	if !x.m.checkChildren || x.draining() || x.err != nil {
		return
	}
	x.m.checkChildren = false
	x.settleQuestionsOfChildren()
	open := x.m.run.OpenChildren()
	if x.m.program.recorded && !x.m.run.Cancelling() {
		open = nil // a process without the node types executes no children
	}
	for _, t := range x.children.Due(open, x.m.unchangedSinceRelease) {
		t.Begin()
		switch t.Kind {
		case childrun.Join:
			ctx, stop := context.WithCancel(x.local.ctx)
			if x.joins == nil {
				x.joins = make(map[*childrun.Child]context.CancelFunc)
			}
			x.joins[t.Child] = stop
			x.local.loops.Go(func() {
				defer stop()
				x.superviseChild(ctx, &t)
			})
		case childrun.StopJoin:
			x.joins[t.Child]()
		case childrun.Cancel:
			x.local.loops.Go(func() { x.cancelOpenChild(&t) })
		}
	}
	x.acknowledgeCancel()
}

// acknowledgeCancel acknowledges a cancellation once it is durable in all open children.
func (x *Execution) acknowledgeCancel() {
	if len(x.cancelAcks) > 0 && x.children.Cancelled() {
		x.cancelAcknowledged(nil)
	}
}

func (x *Execution) cancelAcknowledged(err error) {
	for _, ack := range x.cancelAcks {
		ack <- err
	}
	x.cancelAcks = nil
}

// superviseChild joins a child. The child itself reports its end or pause.
func (x *Execution) superviseChild(ctx context.Context, t *childrun.Task) {
	defer x.command(func(*engine.Run) (engine.Event, error) {
		delete(x.joins, t.Child)
		if t.Child.Joined() {
			x.m.checkChildren = true
		}
		return nil, nil
	})
	x.failWith(x.retryWhileOwned(ctx, func() error { return x.local.joinChild(x, &t.Open) }))
}

// retryWhileOwned retries until no other process owns the child or ctx ends.
func (x *Execution) retryWhileOwned(ctx context.Context, try func() error) error {
	for ctx.Err() == nil {
		err := try()
		if !errors.Is(err, store.ErrOwned) && !errors.Is(err, store.ErrFenced) {
			return err
		}
		select {
		case <-time.After(x.local.o.Poll):
		case <-x.done:
			return nil
		case <-ctx.Done():
		}
	}
	return nil
}

// failWith ends the execution because a child cannot be executed or cancelled. The run stays as its journal has it.
func (x *Execution) failWith(err error) {
	if err == nil || errors.Is(err, ErrClosed) || x.local.ctx.Err() != nil {
		return
	}
	x.command(func(*engine.Run) (engine.Event, error) {
		if x.err == nil {
			x.err = err
		}
		return nil, nil
	})
}

// joinChild starts the child, or resumes it if it has to continue.
func (l *Local) joinChild(x *Execution, c *engine.OpenChild) error {
	row, err := l.childRow(c.Start.Run)
	if err != nil || childrun.RestsAsReported(c, row) {
		return err
	}
	p, err := l.programOf(l.ctx, c.Start.Fingerprint)
	if err != nil && row.Committed {
		return err
	}
	if err != nil {
		return l.reportToParent(x.ID, &engine.ChildReported{
			ID: c.ID, Run: c.Start.Run, Status: engine.Failed,
			Error: &engine.Error{
				Code: engine.CodeChildFlow, Permanent: true,
				Message: fmt.Sprintf("it could not begin: %v", err),
			},
		})
	}
	y, err := l.Start(l.ctx, p, x.childStartOptions(c))
	if err != nil {
		return err
	}
	select {
	case <-y.parentLink.whenReady(): // it has reported everything
	case <-x.done:
	}
	return nil
}

// childRow reads the child's row from the store.
func (l *Local) childRow(run string) (childrun.Row, error) {
	row, err := l.store.Run(l.ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return childrun.Row{}, nil
	}
	if err != nil {
		return childrun.Row{}, fmt.Errorf("child run %s: %w", run, err)
	}
	return childrun.Row{Exists: true, Committed: row.Commits > 0, Status: row.Head.Status, Waiting: row.Head.Waiting}, nil
}

// childStartOptions returns the start of the child from the parent's journal.
func (x *Execution) childStartOptions(c *engine.OpenChild) StartOptions {
	b := childStartOptionsOf(x.m.run.Start, x.ID, c)
	b.Folder = x.m.program.folderOf(x.m.run.Start.Folder, c.Start.Fingerprint)
	path, _ := engine.SplitInterruptID(c.ID)
	if n := x.m.run.Plan().Find(path); n != nil && n.Def.Uses == nil {
		b.caller = c.ID
	}
	return b
}

func childStartOptionsOf(s *engine.RunStarted, parent string, c *engine.OpenChild) StartOptions {
	return StartOptions{
		ID: c.Start.Run, Inputs: c.Start.Inputs, State: c.Start.State, User: s.User, Parent: parent,
		Depth: s.Depth + 1, Origin: "node", node: c.ID, main: &c.Start.Main,
		treeSession: cmp.Or(s.Session, s.TreeSession), treeRound: cmp.Or(s.Round, s.TreeRound),
	}
}

// cancelOpenChild cancels a child and all runs below it.
func (x *Execution) cancelOpenChild(t *childrun.Task) {
	err := x.retryWhileOwned(x.local.ctx, func() error { return x.local.cancelChild(x, &t.Open) })
	if err != nil {
		x.failWith(fmt.Errorf("cancel child run %s: %w", t.Open.Start.Run, err))
		return
	}
	x.command(func(*engine.Run) (engine.Event, error) {
		t.Child.CancelDurable()
		x.acknowledgeCancel()
		return nil, nil
	})
}

func (l *Local) cancelChild(x *Execution, c *engine.OpenChild) error {
	row, err := l.childRow(c.Start.Run)
	if err != nil {
		return err
	}
	means := childrun.MeansToCancel(row)
	if means == childrun.ReportCancelled {
		return l.reportToParent(x.ID, &engine.ChildReported{ID: c.ID, Run: c.Start.Run, Status: engine.Cancelled})
	}
	return l.withProgram(l.ctx, c.Start.Run, c.Start.Fingerprint, func(p *Program) error {
		p = p.IgnoringToolChanges()
		if means == childrun.CancelFirst {
			return l.cancelUnstarted(p, x.childStartOptions(c))
		}
		_, err = l.Do(l.ctx, p, c.Start.Run, Cancel("", orphanReason))
		if errors.Is(err, ErrStatus) { // the end of its execution reports the outcome
			return nil
		}
		return err
	})
}

// cancelUnstarted cancels a child run without commits by its first commit.
func (l *Local) cancelUnstarted(p *Program, b StartOptions) error {
	var ack chan error
	y, fresh, err := l.getOrLoad(l.ctx, p, b.ID, loadNew, func(y *Execution) error {
		if err := y.stageStart(p, &b); err != nil {
			return err
		}
		ack = y.command(Cancel("", orphanReason))
		return nil
	})
	switch {
	case err != nil:
		return err
	case fresh:
		return y.awaitAck(l.ctx, ack)
	}
	if _, err = l.Do(l.ctx, p, b.ID, Cancel("", orphanReason)); errors.Is(err, ErrStatus) {
		return nil
	}
	return err
}

// orphanReason is the reason for cancelling the children of a cancelled or failed run.
const orphanReason = "the run that started it stops"

// programOf returns the program of a flow by its fingerprint.
func (l *Local) programOf(ctx context.Context, fingerprint string) (*Program, error) {
	if l.o.Flow == nil {
		return nil, fmt.Errorf("the flow %s: %w: this process knows no flows by fingerprint", fingerprint, store.ErrNotFound)
	}
	return l.o.Flow(ctx, fingerprint)
}

// recheckChild returns the command that joins a child again, after another process has found that it continues.
func (x *Execution) recheckChild(run string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		for _, c := range r.OpenChildren() {
			if c.Start.Run == run {
				x.children.Forget(c.ID)
				x.m.checkChildren, x.m.unchangedSinceRelease = true, false
			}
		}
		return nil, nil
	}
}
