package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// toolRuns are the runs that tool calls of an execution wait for; the driver owns them.
type toolRuns struct {
	open []*toolRun
	// pendingCancels are cancellations of the run that wait until the runs of its tool calls are cancelled; cancelled is
	// set afterwards.
	pendingCancels []driverMessage
	cancelled      bool
	ended          []chan struct{} // calls that have ended while cancellations wait
}

// cancelling reports whether a cancellation of the run waits for its tool runs: nothing starts, and the execution does
// not end.
func (c *toolRuns) cancelling() bool { return len(c.pendingCancels) > 0 }

// removeToolRun removes a call that has ended. If a cancellation of the run waits, it returns once the run is cancelled,
// so that nothing follows from the call.
func (x *Execution) removeToolRun(ctx context.Context, c *toolRun) {
	free := make(chan struct{})
	x.command(func(*engine.Run) (engine.Event, error) {
		for i, o := range x.toolRuns.open {
			if o == c {
				x.toolRuns.open = append(x.toolRuns.open[:i], x.toolRuns.open[i+1:]...)
				break
			}
		}
		if x.toolRuns.cancelling() {
			x.toolRuns.ended = append(x.toolRuns.ended, free)
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

// deferCancel delays a cancellation until the runs of the run's tool calls are cancelled, those that a dead process
// started included. It returns false if there is nothing to wait for: a run that waits only for people has none.
func (x *Execution) deferCancel(m *driverMessage) bool {
	c := &x.toolRuns
	if c.cancelled || x.state.load() == acquiring || x.m.seq == 0 || x.m.run.Status() == engine.Paused {
		return false
	}
	c.pendingCancels = append(c.pendingCancels, *m)
	if len(c.pendingCancels) > 1 {
		return true
	}
	open := append([]*toolRun(nil), c.open...)
	for _, o := range open {
		o.cancelled.Store(true)
	}
	x.local.loops.Go(func() {
		for _, o := range open {
			<-o.ready
		}
		if err := x.retryWhileOwned(x.local.ctx, func() error { return x.local.cancelToolRuns(x.ID) }); err != nil {
			x.failWith(err)
			return
		}
		x.command(func(*engine.Run) (engine.Event, error) {
			x.applyDeferredCancel()
			return nil, nil
		})
	})
	return true
}

// applyDeferredCancel cancels the run after the runs of its tool calls.
func (x *Execution) applyDeferredCancel() {
	c := &x.toolRuns
	waiting, held := c.pendingCancels, c.ended
	c.pendingCancels, c.ended, c.cancelled = nil, nil, true
	for i := range waiting {
		if err := x.handleCommand(&waiting[i]); err != nil && x.err == nil {
			x.err = err
		}
	}
	for _, free := range held {
		close(free)
	}
}

// cancelToolRunsAt cancels the runs for which tool calls of a stopping node wait.
func (x *Execution) cancelToolRunsAt(path string) {
	for _, c := range x.toolRuns.open {
		if c.path != path || c.cancelled.Swap(true) {
			continue
		}
		x.local.loops.Go(func() {
			<-c.ready
			if err := x.retryWhileOwned(x.local.ctx, func() error { return x.local.cancelToolRun(c.run) }); err != nil && x.local.ctx.Err() == nil {
				x.local.o.Logger.Warn("cancel a flow that a tool runs", "run", c.run, "error", err)
			}
		})
	}
}

// cancelToolRuns cancels the runs that tool calls of a run have started and that have not ended.
func (l *Local) cancelToolRuns(caller string) error {
	f := store.Filter{Parent: caller, Limit: 1000}
	for {
		list, err := l.store.Runs(l.ctx, f)
		if err != nil {
			return err
		}
		for i := range list {
			if r := &list[i]; r.Origin == originTool && r.Commits > 0 && !r.Head.Status.Ended() {
				if err := l.cancelToolRun(r.ID); err != nil {
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

// cancelAbandonedToolRuns cancels runs of tool calls that a dead process started, if the run was being cancelled: they
// could not be found once the calling nodes are recorded as cancelled.
func (l *Local) cancelAbandonedToolRuns(m *machine) error {
	executing := m.run.Executing()
	goesOn := func(path string) bool { return !m.run.Aborted(path) }
	if !m.run.Cancelling() || len(executing) == 0 || slices.ContainsFunc(executing, goesOn) {
		return nil
	}
	return l.cancelToolRuns(m.run.ID)
}

// cancelToolRun cancels the run of a tool call, if there is one and it has not ended. A
// process that executes it gets a message.
func (l *Local) cancelToolRun(run string) error {
	_, err := l.drive(run, Cancel("", orphanReason))
	switch {
	case errors.Is(err, ErrStatus), errors.Is(err, store.ErrNotFound):
		return nil
	case errors.Is(err, store.ErrOwned):
		_ = l.store.Post(l.ctx, store.Post{Run: run, Kind: "cancel"})
	}
	return err
}
