package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// childHandle is an open child run as its parent's execution sees to it. All but stop
// and kept belong to the parent's goroutine.
type childHandle struct {
	ready      chan struct{} // closed once the child was started or joined; nil before that is begun
	synced     bool          // and it has told how far it is, where that is news
	noStart    atomic.Bool   // it is not to be started any more
	cancelling bool
	cancelled  bool // that is durable, in the child and all below it
}

// superviseChildren starts or joins the children that the journal says are open, and
// cancels those that nobody wants any more. What it acts on is durable.
func (x *Execution) superviseChildren() {
	if !x.m.checkChildren || x.closing.Load() || x.err != nil {
		return
	}
	x.m.checkChildren = false
	open := x.m.run.OpenChildren()
	if x.m.program.recorded && !x.m.run.Cancelling() {
		open = nil // only a process that has the node types drives its children
	}
	before := x.children
	x.children = make(map[string]*childHandle, len(open))
	for i := range open {
		c := &open[i]
		k := before[c.ID]
		if k == nil {
			k = &childHandle{}
		}
		x.children[c.ID] = k
		switch {
		case c.ToCancel && !k.cancelling:
			k.cancelling = true
			x.local.loops.Go(func() { x.cancelOpenChild(*c, k) })
		case !c.ToCancel && k.ready == nil && (c.Active() || !x.m.unchangedSinceRelease):
			k.ready = make(chan struct{})
			x.local.loops.Go(func() { x.superviseChild(*c, k) })
		}
	}
	x.acknowledgeCancel()
}

// acknowledgeCancel acknowledges a cancellation once it is durable in all open children.
func (x *Execution) acknowledgeCancel() {
	if len(x.cancelAcks) == 0 {
		return
	}
	for _, k := range x.children {
		if !k.cancelled {
			return
		}
	}
	x.cancelAcknowledged(nil)
}

func (x *Execution) cancelAcknowledged(err error) {
	for _, ack := range x.cancelAcks {
		ack <- err
	}
	x.cancelAcks = nil
}

// superviseChild has the child go on, wherever it is. That it ended or pauses it says
// itself.
func (x *Execution) superviseChild(c engine.OpenChild, k *childHandle) {
	defer x.command(func(*engine.Run) (engine.Event, error) {
		k.synced = true
		return nil, nil
	})
	defer close(k.ready)
	err := x.retryWhileOwned(func() error {
		if k.noStart.Load() {
			return nil
		}
		return x.local.joinChild(x, &c)
	})
	x.failWith(err)
}

// retryWhileOwned tries until no other process owns the child.
func (x *Execution) retryWhileOwned(try func() error) error {
	for {
		err := try()
		if !errors.Is(err, store.ErrOwned) && !errors.Is(err, store.ErrFenced) {
			return err
		}
		select {
		case <-time.After(x.local.o.Poll):
		case <-x.done:
			return nil
		case <-x.local.ctx.Done():
			return nil
		}
	}
}

// failWith ends the execution where one of its children could not be had; the run
// stays as its journal has it.
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

// joinChild starts the child, or resumes it where it has to go on.
func (l *Local) joinChild(x *Execution, c *engine.OpenChild) error {
	row, err := l.o.Store.Run(l.ctx, c.Start.Run)
	began := err == nil && row.Commits > 0
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("child run %s: %w", c.Start.Run, err)
	}
	if began && !c.Active() && row.Head.Status == engine.Paused && sameInterrupts(row.Head.Waiting, c.Report.Interrupts) &&
		!hasChildInterrupts(row.Head.Waiting) {
		return nil
	}
	p, err := l.programOf(l.ctx, c.Start.Fingerprint)
	if err != nil && began {
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
	case <-y.parentLink.whenReady(): // it has told what is news
	case <-x.done:
	}
	return nil
}

// hasJoiningChildren reports whether children are being joined, of which the journal may
// not have what they did last: a process may have died before it told.
func (x *Execution) hasJoiningChildren() bool {
	for _, k := range x.children {
		if k.ready != nil && !k.synced {
			return true
		}
	}
	return false
}

// hasChildInterrupts reports whether some of what a run waits for is asked by a child, so that
// its row does not say whether it still is.
func hasChildInterrupts(waits []engine.Interrupt) bool {
	return slices.ContainsFunc(waits, func(i engine.Interrupt) bool { return strings.Contains(i.ID, ">") })
}

// childStartOptions is what the child begins with, as the parent's journal has it.
func (x *Execution) childStartOptions(c *engine.OpenChild) StartOptions {
	b := childStartOptionsOf(x.m.run.Start, x.ID, c)
	b.Folder = x.m.program.folderOf(x.m.run.Start.Folder, c.Start.Fingerprint)
	path := c.ID[:max(strings.LastIndexByte(c.ID, ':'), 0)]
	if n := x.m.run.Plan().Find(path); n != nil && n.Def.Uses == nil {
		b.caller = c.ID
	}
	return b
}

func childStartOptionsOf(s *engine.RunStarted, parent string, c *engine.OpenChild) StartOptions {
	return StartOptions{
		ID: c.Start.Run, Inputs: c.Start.Inputs, State: c.Start.State, User: s.User, Parent: parent,
		Depth: s.Depth + 1, Origin: "node", node: c.ID, main: &c.Start.Main,
	}
}

// cancelOpenChild cancels the child and all below it. One that has not begun never
// does.
func (x *Execution) cancelOpenChild(c engine.OpenChild, k *childHandle) {
	k.noStart.Store(true)
	if k.ready != nil {
		<-k.ready
	}
	err := x.retryWhileOwned(func() error { return x.local.cancelChild(x, &c) })
	if err != nil {
		x.failWith(fmt.Errorf("cancel child run %s: %w", c.Start.Run, err))
		return
	}
	x.command(func(*engine.Run) (engine.Event, error) {
		k.cancelled = true
		x.acknowledgeCancel()
		return nil, nil
	})
}

func (l *Local) cancelChild(x *Execution, c *engine.OpenChild) error {
	row, err := l.o.Store.Run(l.ctx, c.Start.Run)
	if errors.Is(err, store.ErrNotFound) {
		return l.reportToParent(x.ID, &engine.ChildReported{ID: c.ID, Run: c.Start.Run, Status: engine.Cancelled})
	}
	if err != nil {
		return err
	}
	return l.withProgram(l.ctx, c.Start.Run, c.Start.Fingerprint, func(p *Program) error {
		p = p.IgnoringToolChanges()
		if row.Commits == 0 { // it is cancelled with its first commit
			return l.cancelUnstarted(p, x.childStartOptions(c))
		}
		_, err = l.Do(l.ctx, p, c.Start.Run, Cancel("", orphanReason))
		if errors.Is(err, ErrStatus) { // it has ended, and says so
			return nil
		}
		return err
	})
}

// cancelUnstarted cancels a child run that has made no commit, with its first.
func (l *Local) cancelUnstarted(p *Program, b StartOptions) error {
	var ack chan error
	y, fresh, err := l.getOrLoad(l.ctx, p, b.ID, false, func(y *Execution) error {
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

// orphanReason is why children are cancelled that did not ask for it.
const orphanReason = "the run that started it stops"

// sameInterrupts reports whether two lists name the same interrupts.
func sameInterrupts(a, b []engine.Interrupt) bool {
	return slices.EqualFunc(a, b, func(a, b engine.Interrupt) bool { return a.ID == b.ID })
}

// programOf is the program of a flow by its fingerprint.
func (l *Local) programOf(ctx context.Context, fingerprint string) (*Program, error) {
	if l.o.Flow == nil {
		return nil, fmt.Errorf("the flow %s: %w: this process knows no flows by fingerprint", fingerprint, store.ErrNotFound)
	}
	return l.o.Flow(ctx, fingerprint)
}

// recheckChild has the execution see to a child that somebody else found moving.
func (x *Execution) recheckChild(run string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		for _, c := range r.OpenChildren() {
			if c.Start.Run == run {
				delete(x.children, c.ID)
				x.m.checkChildren, x.m.unchangedSinceRelease = true, false
			}
		}
		return nil, nil
	}
}
