package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// calls are the runs that tool calls of an execution wait for; the execution's
// goroutine only.
type calls struct {
	open []*call
	// waiting are cancellations of the run that wait until its calls' runs are
	// cancelled; ceased is after that.
	waiting []mail
	ceased  bool
	held    []chan struct{} // calls that have ended meanwhile
}

// ceasing reports whether the run is about to be cancelled: nothing begins, and
// it does not end.
func (c *calls) ceasing() bool { return len(c.waiting) > 0 }

// dismiss forgets a call that has ended. Where the run is about to be cancelled it
// returns once that is so, so that nothing follows from the call.
func (x *Execution) dismiss(ctx context.Context, c *call) {
	free := make(chan struct{})
	x.command(func(*engine.Run) (engine.Event, error) {
		for i, o := range x.calls.open {
			if o == c {
				x.calls.open = append(x.calls.open[:i], x.calls.open[i+1:]...)
				break
			}
		}
		if x.calls.ceasing() {
			x.calls.held = append(x.calls.held, free)
		} else {
			close(free)
		}
		return nil, nil
	})
	select {
	case <-free:
	case <-x.done:
	case <-ctx.Done():
	}
}

// cease puts a cancellation off until the runs that the run's tool calls began
// are cancelled, also those that a process which died has left. A run that waits
// for people only has none.
func (x *Execution) cease(m *mail) bool {
	c := &x.calls
	if c.ceased || x.untaken || x.m.seq == 0 || x.m.run.Status() == engine.Paused {
		return false
	}
	if _, ok := x.local.o.Store.(lister); !ok {
		return false
	}
	c.waiting = append(c.waiting, *m)
	if len(c.waiting) > 1 {
		return true
	}
	open := append([]*call(nil), c.open...)
	for _, o := range open {
		o.stop.Store(true)
	}
	x.local.loops.Go(func() {
		for _, o := range open {
			<-o.kept
		}
		if err := x.patiently(func() error { return x.local.cancelCalls(x.ID) }); err != nil {
			x.give(err)
			return
		}
		x.command(func(*engine.Run) (engine.Event, error) {
			x.haveCeased()
			return nil, nil
		})
	})
	return true
}

// haveCeased cancels the run, now that its calls' are.
func (x *Execution) haveCeased() {
	c := &x.calls
	waiting, held := c.waiting, c.held
	c.waiting, c.held, c.ceased = nil, nil, true
	for i := range waiting {
		if err := x.obey(&waiting[i]); err != nil && x.err == nil {
			x.err = err
		}
	}
	for _, free := range held {
		close(free)
	}
}

// endCalls cancels the runs that tool calls of a node wait for which stops.
func (x *Execution) endCalls(path string) {
	for _, c := range x.calls.open {
		if c.path != path || c.stop.Swap(true) {
			continue
		}
		x.local.loops.Go(func() {
			<-c.kept
			if err := x.patiently(func() error { return x.local.cancelCall(c.run) }); err != nil && x.local.ctx.Err() == nil {
				x.local.o.Logger.Warn("cancel a flow that a tool runs", "run", c.run, "error", err)
			}
		})
	}
}

// lister is a Store that lists runs.
type lister interface {
	Runs(ctx context.Context, f store.Filter) ([]store.Run, error)
}

// cancelCalls cancels what tool calls of a run have begun and what goes on.
func (l *Local) cancelCalls(caller string) error {
	f := store.Filter{Parent: caller, Limit: 1000}
	for {
		list, err := l.o.Store.(lister).Runs(l.ctx, f)
		if err != nil {
			return err
		}
		for i := range list {
			if r := &list[i]; r.Origin == originTool && r.Commits > 0 && !r.Head.Status.Ended() {
				if err := l.cancelCall(r.ID); err != nil {
					return err
				}
			}
			f.Before = list[i].ID
		}
		if len(list) < f.Limit {
			return nil
		}
	}
}

// endLeft cancels what tool calls of a run have begun and a process that died has
// left, where the run was stopping: nobody looks for it any more once the nodes
// that called are noted as cancelled.
func (l *Local) endLeft(m *machine) error {
	executing := m.run.Executing()
	goesOn := func(path string) bool { return !m.run.Aborted(path) }
	if !m.run.Tearing() || len(executing) == 0 || slices.ContainsFunc(executing, goesOn) {
		return nil
	}
	if _, ok := l.o.Store.(lister); !ok {
		return nil
	}
	return l.cancelCalls(m.run.ID)
}

// cancelCall cancels the run of a tool call, if there is one and it goes on. A
// process that drives it is told.
func (l *Local) cancelCall(run string) error {
	_, err := l.drive(run, Cancel("", orphanReason))
	switch {
	case errors.Is(err, ErrStatus), errors.Is(err, store.ErrNotFound):
		return nil
	case errors.Is(err, store.ErrOwned):
		if s, ok := l.o.Store.(Poster); ok {
			_ = s.Post(l.ctx, store.Post{Run: run, Kind: "cancel"})
		}
	}
	return err
}
