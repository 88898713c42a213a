package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// parentLink is what ties a child's execution to its parent's. A child does nothing
// outside before its parent is driven by this process too, and knows of it.
type parentLink struct {
	requested, attached bool
	parent              *Execution // nil for a run without one, or whose parent has ended
	lastReport          *engine.ChildReported

	mu    sync.Mutex
	ready chan struct{} // closed once tied, or told how the execution ended
}

// whenReady is closed once the execution and all above it know of each other.
func (b *parentLink) whenReady() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// markReady notes that the bond is tied, or never will be.
func (b *parentLink) markReady() {
	b.attached = true
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ready)
}

// reattachToParent has the runs above hear of what a person added to their budgets, before
// anything is launched that counts on it.
func (x *Execution) reattachToParent() {
	b := &x.parentLink
	if !b.attached || b.parent == nil || reflect.DeepEqual(b.lastReport.Increases, x.m.run.IncreasesAbove()) {
		return
	}
	b.requested, b.attached = false, false
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = make(chan struct{})
}

// errNotAwaited: nobody waits for the child any more.
var errNotAwaited = errors.New("nothing waits for this run any more")

// attachToParent has the parent driven here. It is called once the execution has something
// to do.
func (x *Execution) attachToParent() {
	b := &x.parentLink
	if b.requested {
		return
	}
	b.requested = true
	s := x.m.run.Start
	switch {
	case !requiresParent(s), x.m.program.recorded: // the end of the execution tells
		b.markReady()
		return
	case s.Node == "":
		x.local.loops.Go(x.findCaller)
		return
	}
	news := x.m.childReport()
	b.lastReport = news
	x.local.loops.Go(func() {
		parent, accounts, err := x.local.attach(s.Parent, news)
		x.command(func(*engine.Run) (engine.Event, error) {
			if b.attached {
				return nil, nil
			}
			defer b.markReady()
			switch {
			case errors.Is(err, errNotAwaited):
				return &engine.CancelRequested{Reason: errNotAwaited.Error()}, nil
			case x.closing.Load():
			case err != nil && !x.m.run.CancelRequested(): // one that stops needs no budget from above
				x.err = fmt.Errorf("run %s, whose parent is %s: %w", x.ID, s.Parent, err)
			case parent != nil:
				b.parent = parent
				x.publishTo(parent, x.durableEvents())
				x.m.ledger.attachParent(parent, x.ID, accounts)
			}
			return nil, nil
		})
	})
}

// requiresParent reports whether a run may do nothing before it is known of above.
func requiresParent(s *engine.RunStarted) bool {
	return s.Node != "" || s.Parent != "" && s.Origin == originTool
}

// findCaller has the run of a tool call that is resumed by itself go on, unless
// its caller was cancelled: then nobody is left to hear of it.
func (x *Execution) findCaller() {
	row, err := x.local.o.Store.Run(x.local.ctx, x.m.run.Start.Parent)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	x.command(func(r *engine.Run) (engine.Event, error) {
		b := &x.parentLink
		switch {
		case b.attached:
			return nil, nil
		case err != nil && !x.closing.Load():
			x.err = fmt.Errorf("run %s, whose caller is %s: %w", x.ID, r.Start.Parent, err)
		}
		b.markReady()
		if row.Head.Status == engine.Cancelled {
			return &engine.CancelRequested{Reason: errNotAwaited.Error()}, nil
		}
		return nil, nil
	})
}

// attach tells the parent that its child goes on, and returns the parent's
// execution, which stays as long as that is so, with the budgets of the node. It
// is nil where the parent has ended.
func (l *Local) attach(parent string, news *engine.ChildReported) (x *Execution, accounts *childAccounts, err error) {
	for told, ended := true, false; told; {
		x, err = l.drive(parent, func(r *engine.Run) (engine.Event, error) {
			told = false
			if ended = r.Status().Ended(); ended {
				return nil, nil
			}
			c, ok := r.OpenChild(news.ID)
			if !ok {
				return nil, errNotAwaited
			}
			accounts = &childAccounts{node: c.Node, list: r.Accounts(c.Node)}
			if sameReport(c.Report, news) {
				return nil, nil
			}
			told = true // and once more, for the accounts as they are after it
			return news, nil
		})
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && ended:
			return nil, nil, nil
		case errors.Is(err, store.ErrOwned):
			l.notifyOwner(parent, news.Run)
			return nil, nil, err
		case err != nil:
			return nil, nil, err
		}
	}
	if x.m.program.recorded {
		return nil, nil, fmt.Errorf("run %s cannot be continued by this process: %w", parent, ErrDependenciesChanged)
	}
	select {
	case <-x.parentLink.whenReady():
		return x, accounts, nil
	case <-x.done:
		return nil, nil, cmp.Or(x.err, ErrClosed)
	}
}

// childAccounts are the budgets of a node that bind the child it runs.
type childAccounts struct {
	node string
	list []engine.Account
}

// drive carries out a command on a run that is found by its id alone: under the
// recorded program where this process cannot run it.
func (l *Local) drive(id string, c Command) (x *Execution, err error) {
	do := func(p *Program) (err error) {
		x, err = l.Do(context.WithoutCancel(l.ctx), p, id, c)
		return err
	}
	if held := l.Held(id); held != nil {
		err = do(held.m.program)
		return x, err
	}
	row, err := l.o.Store.Run(l.ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	err = l.withProgram(l.ctx, id, row.Fingerprint, do)
	return x, err
}

// reportToParent reports to the parent how far a child has come, resuming the parent here
// unless somebody drives it.
func (l *Local) reportToParent(parent string, news *engine.ChildReported) error {
	for posted := false; ; posted = true {
		_, err := l.drive(parent, reportCommand(news))
		if !errors.Is(err, store.ErrOwned) {
			return err
		}
		if posted {
			return nil
		}
		l.notifyOwner(parent, news.Run)
		// The owner may have given the parent back before it could see the message.
		if row, err := l.o.Store.Run(l.ctx, parent); err != nil || row.Owner != "" {
			return err
		}
	}
}

// reportCommand is the command that brings the parent a report. What it knows, or
// has no use for, is nothing to do.
func reportCommand(news *engine.ChildReported) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if !r.AwaitsChild(news.ID) || r.Status() == engine.Failed && news.Status != engine.Completed {
			return nil, nil
		}
		if c, open := r.OpenChild(news.ID); open && (c.Start.Run != news.Run || sameReport(c.Report, news)) {
			return nil, nil
		}
		return news, nil
	}
}

// sameReport reports whether a report says nothing that is not known: before the
// first, a child goes and has cost nothing.
func sameReport(known, news *engine.ChildReported) bool {
	if known == nil {
		known = &engine.ChildReported{ID: news.ID, Run: news.Run, Status: engine.Running}
	}
	return known.Status == news.Status && known.Usage == news.Usage && sameInterrupts(known.Interrupts, news.Interrupts) &&
		reflect.DeepEqual(known.Increases, news.Increases)
}

// notifyOwner wakes whoever holds a run.
func (l *Local) notifyOwner(run, child string) {
	s, ok := l.o.Store.(Poster)
	if !ok {
		return
	}
	if err := s.Post(l.ctx, store.Post{Run: run, Kind: "child", Name: child, At: time.Now()}); err != nil && l.ctx.Err() == nil {
		l.o.Logger.Warn("post", "run", run, "error", err)
	}
}

// Poster is a Store that takes messages to runs that other processes hold.
type Poster interface {
	Post(ctx context.Context, p store.Post) error
}

// childReport is what the run's parent is to know of it.
func (m *machine) childReport() *engine.ChildReported {
	r := m.run
	e := &engine.ChildReported{
		ID: r.Start.Node, Run: r.ID, Status: r.Status(), Usage: r.CommittedUsage(), Increases: r.IncreasesAbove(), Error: r.Failure(),
	}
	switch {
	case !e.Status.Ended():
		e.Interrupts = r.Interrupts()
	case e.Status == engine.Completed:
		main := m.contexts[engine.MainContext]
		e.Began, e.Length = r.Start.Contexts[0].At, main.History.Len()
		e.Outputs, e.Answer = r.Outputs(), finalAnswer(main, e.Began)
	}
	return e
}

// finalAnswer is the last thing that a model said in a context from a position
// on; where none did, what its last node left to be said.
func finalAnswer(c convo.Context, began int) string {
	for i := c.History.Len() - 1; i >= max(began, c.Epoch); i-- {
		m, err := c.History.Read(i)
		if err != nil {
			break
		}
		if m.Role == convo.Assistant && m.Text != "" {
			return m.Text
		}
	}
	return c.Output
}

// notifyParent tells the parent what it should know while the execution goes on: what
// it asks.
func (x *Execution) notifyParent() {
	b := &x.parentLink
	if b.parent == nil || !x.m.questionsChanged {
		return
	}
	x.m.questionsChanged = false
	news := x.m.childReport()
	if news.Status == engine.Paused || news.Status.Ended() || sameInterrupts(b.lastReport.Interrupts, news.Interrupts) {
		return // the end of the execution tells
	}
	b.lastReport = news
	b.parent.command(reportCommand(news))
}

// handOver ends the execution for all who wait for it. The parent is told first,
// so that what the next execution of the run has to say comes after it.
func (x *Execution) handOver() {
	s := x.m.run.Start
	if s == nil || s.Node == "" || x.closing.Load() {
		x.afterRelease()
		return
	}
	news := x.m.childReport()
	x.local.loops.Go(func() {
		defer x.afterRelease()
		if x.err != nil {
			x.local.retryChild(cmp.Or(x.parentLink.parent, x.local.Held(s.Parent)), news.ID, x.err)
			return
		}
		err := x.local.reportToParent(s.Parent, news)
		if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, store.ErrNotFound) && x.local.ctx.Err() == nil {
			x.local.o.Logger.Warn("tell the parent", "run", x.ID, "parent", s.Parent, "error", err)
		}
	})
}

func (x *Execution) afterRelease() {
	if !x.parentLink.attached {
		x.parentLink.markReady()
	}
	x.local.removeExecution(x)
}

// retryChild has the parent look after a child whose execution could not go on:
// in a while, where another process has it.
func (l *Local) retryChild(parent *Execution, id string, err error) {
	if parent == nil {
		return
	}
	if !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrOwned) {
		parent.failWith(err)
		return
	}
	parent.command(func(*engine.Run) (engine.Event, error) {
		delete(parent.children, id)
		parent.m.checkChildren = true
		return nil, nil
	})
}
