package runner

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine"
)

// How an attempt is stopped when its run is cancelled or fails: no further effect starts. Effects in flight have
// drainTimeout to end by themselves; then their context is cancelled, and after stopGrace their outcome counts as
// unknown. A function without an effect in flight has drainTimeout to return. In a branch that has lost a race and may
// only read, the context is cancelled at once.
const (
	drainTimeout = 2 * time.Second
	stopGrace    = 10 * time.Second
)

// stopUnneeded stops the attempts that the run no longer needs.
func (x *Execution) stopUnneeded() {
	if !x.m.run.Cancelling() {
		return
	}
	for path, a := range x.m.active {
		if a.cancel == nil || a.stopping.Load() || !x.m.run.Aborted(path) {
			continue
		}
		a.stopping.Store(true)
		if a.onlyReads && x.m.run.LostRace(path) { // its results are not used
			a.cancel(errAborted)
			x.stopAfter(a, drainTimeout, stopAbandon)
			continue
		}
		if a.effectsInFlight.Load() == 0 { // only its function must return
			a.cancel(errAborted)
			x.stopAfter(a, drainTimeout, stopAbandon)
			continue
		}
		x.stopAfter(a, drainTimeout, stopContext)
		x.stopAfter(a, stopGrace, stopAbandon)
	}
}

func (x *Execution) stopAfter(a *attempt, d time.Duration, stop int) {
	time.AfterFunc(d, func() { x.send(driverMessage{attempt: a, stop: stop}) })
}

// The levels of driverMessage.stop.
const (
	stopContext = 1 // cancel the attempt's context
	stopAbandon = 2 // abandon it: its run is being cancelled or has failed
	stopTimeout = 3 // abandon it: its timeout has passed and its function has not returned
)

// timeoutGrace is how long a function may take to return after its context was cancelled by a timeout; with an effect in
// flight it is drainTimeout.
const timeoutGrace = 100 * time.Millisecond

// stop ends an attempt: level stopContext cancels its context, the others abandon it.
func (x *Execution) stop(a *attempt, level int) error {
	switch {
	case level == stopTimeout && !x.m.run.Aborted(a.Path):
		e := a.toError(context.Cause(a.ctx))
		return x.abandon(a, &engine.NodeFailed{Path: a.Path, Error: e, Micros: time.Since(a.enteredAt).Microseconds()})
	case level == stopContext:
		a.cancel(errAborted)
		return nil
	}
	a.cancel(errAborted)
	return x.abandon(a, x.m.cancelledEvent(a.Path, a.effectsInFlight.Load() > 0 || a.hasUnknownEffect()))
}

// abandon ends an attempt whose function has not returned: results of its effects are kept, further ones are
// discarded, and its goroutine is counted until it ends.
func (x *Execution) abandon(a *attempt, e engine.Event) error {
	delete(x.m.active, a.Path)
	a.mu.Lock()
	pending := append(a.pending, a.chargeUnreserved()...)
	if n := a.partialNote(a.partialKey); n != nil && a.effects[a.partialKey] == nil && errors.Is(context.Cause(a.ctx), errAborted) {
		pending = append(pending, n)
	}
	a.pending, a.abandoned = nil, true
	a.mu.Unlock()
	n := x.local.abandoned.Add(1)
	x.local.o.Logger.Warn("a node's function does not return; its result is discarded",
		"run", x.ID, "node", a.Path, "attempt", a.Attempt, "type", a.Plan.Def.Type, "abandoned", n)
	for _, p := range pending {
		if err := x.m.step(x.local.clock.now(), p); err != nil {
			return err
		}
	}
	return x.m.step(x.local.clock.now(), e)
}

// attemptReturned notes that the function of an attempt has returned.
func (x *Execution) attemptReturned(a *attempt) {
	a.mu.Lock()
	late := a.abandoned
	a.mu.Unlock()
	if late {
		n := x.local.abandoned.Add(-1)
		x.local.o.Logger.Info("an abandoned node has returned", "run", x.ID, "node", a.Path, "abandoned", n)
	}
}

// Abandoned returns how many functions of abandoned attempts have not returned.
func (l *Local) Abandoned() int { return int(l.abandoned.Load()) }

// startTimeouts starts the timeouts of the attempt's node. The time that the attempt has waited counts.
func (x *Execution) startTimeouts(a *attempt) {
	t := a.Plan.Def.Timeout
	if t.Total > 0 {
		left := t.Total
		if len(a.answers) > 0 || len(a.pulled) > 0 || a.Iterated() > 0 {
			left += x.local.clock.until(a.Started)
		}
		a.total = time.AfterFunc(max(left, 0), func() { x.expire(a, timeoutError(a, "in total", t.Total)) })
	}
	if t.Idle > 0 {
		a.idle = time.AfterFunc(t.Idle, func() { x.expire(a, timeoutError(a, "without progress", t.Idle)) })
	}
}

// expire cancels the context of an attempt whose timeout has passed, and soon afterwards abandons the attempt if its
// function does not return.
func (x *Execution) expire(a *attempt, err error) {
	a.cancel(err)
	wait := timeoutGrace
	if a.effectsInFlight.Load() > 0 {
		wait = drainTimeout
	}
	x.stopAfter(a, wait, stopTimeout)
}

// timedOut returns the timeout by which the attempt failed, whatever its function returned afterwards; ok is false if
// none has passed.
func (a *attempt) timedOut() (err *engine.Error, ok bool) {
	if a.ctx.Err() == nil {
		return nil, false
	}
	timeout, ok := errors.AsType[*engine.Error](context.Cause(a.ctx))
	if !ok || timeout.Code != engine.CodeTimeout || timeout.Node != a.Path {
		return nil, false
	}
	return timeout, true
}

// resetIdleTimeout starts the idle timeout again.
func (a *attempt) resetIdleTimeout() {
	if a.idle != nil {
		a.idle.Reset(a.Plan.Def.Timeout.Idle)
	}
}

func (a *attempt) stopTimeouts() {
	if a.total != nil {
		a.total.Stop()
	}
	if a.idle != nil {
		a.idle.Stop()
	}
}

func timeoutError(a *attempt, how string, d time.Duration) error {
	return engine.NewTimeoutError(a.Path, a.Attempt, d.String(), how)
}

// checkMayStart returns nil, or why the attempt must not start another effect.
func (a *attempt) checkMayStart() error {
	if a.stopping.Load() {
		return errAborted
	}
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return nil
}
