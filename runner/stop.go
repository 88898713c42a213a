package runner

import (
	"context"
	"time"

	"github.com/weir-run/weir/engine"
)

// How an attempt is stopped when its run is cancelled or fails: no effect
// starts any more; those in flight have drain to end by themselves, then their
// context ends, and after grace they are given up as unknown.
const (
	drain = 2 * time.Second
	grace = 10 * time.Second
)

// abort stops the attempts that the run does not want any more.
func (x *Execution) abort() {
	if !x.m.run.Tearing() {
		return
	}
	for path, a := range x.m.active {
		if a.cancel == nil || a.stopping.Load() || !x.m.run.Aborted(path) {
			continue
		}
		a.stopping.Store(true)
		x.endCalls(path)
		if a.inflight.Load() == 0 {
			a.cancel(errAborted)
		} else {
			x.after(a, drain, 1)
		}
		x.after(a, grace, 2)
	}
}

func (x *Execution) after(a *attempt, d time.Duration, stop int) {
	time.AfterFunc(d, func() { x.post(mail{attempt: a, stop: stop}) })
}

// stop makes an attempt end: by its context first, then without it.
func (x *Execution) stop(a *attempt, level int) error {
	a.cancel(errAborted)
	if level < 2 {
		return nil
	}
	delete(x.m.active, a.Path)
	return x.m.step(x.local.clock.now(), x.m.cancelled(a.Path, true))
}

// watch bounds the attempt's time as its node asks.
func (a *attempt) watch() {
	t := a.Plan.Def.Timeout
	if t.Total > 0 {
		a.total = time.AfterFunc(t.Total, func() { a.cancel(timeoutError(a, "in total", t.Total)) })
	}
	if t.Idle > 0 {
		a.idle = time.AfterFunc(t.Idle, func() { a.cancel(timeoutError(a, "without progress", t.Idle)) })
	}
}

// progress puts the idle timeout off.
func (a *attempt) progress() {
	if a.idle != nil {
		a.idle.Reset(a.Plan.Def.Timeout.Idle)
	}
}

func (a *attempt) unwatch() {
	if a.total != nil {
		a.total.Stop()
	}
	if a.idle != nil {
		a.idle.Stop()
	}
}

func timeoutError(a *attempt, how string, d time.Duration) error {
	return &engine.Error{
		Code: engine.CodeTimeout, Node: a.Path, Attempt: a.Attempt,
		Message: "the node took longer than " + d.String() + " " + how,
		Hint:    "raise `timeout:` on the node, or add `retry:`",
	}
}

// Bound returns nil, or why the attempt must not begin another effect.
func (a *attempt) barred() error {
	if a.stopping.Load() {
		return errAborted
	}
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return nil
}
