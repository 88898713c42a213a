package runner

import (
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// clock is the time of a Local. It is the system's time, except that Skip advances it when every run only waits.
type clock struct {
	skip  func(open map[string][]engine.Interrupt) bool
	rests bool // executions that only wait end: Options.Rest

	mu       sync.Mutex
	offset   int64 // milliseconds added to the system's time
	idle     map[*Execution]idleState
	retrying bool // a call of skip is scheduled
}

// idleState describes the wait of an execution.
type idleState struct {
	due      int64 // its next timer, Unix milliseconds; 0 for none
	open     []engine.Interrupt
	children []string // active child runs
	seq      int64    // the newest commit
	waits    bool     // nothing of the run is in progress
}

// Waits is what the runs that a Local executes wait for.
type Waits struct {
	// Now is the time of the clock, Unix milliseconds.
	Now int64
	// Open has the interrupts of each run, oldest first, without timers; those of a run may be empty.
	Open map[string][]engine.Interrupt
}

// Waits returns what the runs that this Local executes wait for; ok is false while one of them does anything else. It is
// for tests: without Options.Skip, ok is always false. Runs that this Local does not execute, such as paused ones, are
// not in it.
func (l *Local) Waits() (w Waits, ok bool) {
	c := &l.clock
	if c.skip == nil {
		return w, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.loading) > 0 {
		return w, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w = Waits{Now: time.Now().UnixMilli() + c.offset, Open: make(map[string][]engine.Interrupt, len(l.held))}
	// order: a map is filled, and the answer is the same in any order.
	for id, x := range l.held {
		is, idle := c.idle[x]
		if !idle || !is.waits {
			return w, false
		}
		for _, child := range is.children {
			if l.held[child] == nil { // it is about to start, or to report its end
				return w, false
			}
		}
		w.Open[id] = is.open
	}
	return w, true
}

// errNoTestClock: the clock of a Local is that of the system.
var errNoTestClock = errors.New("the clock can only be moved in tests, with Options.Skip")

// MoveClock moves the clock forward to a time, and fires the timers of executing runs that are due then; a time before
// the present one only does the latter. Runs that this Local does not execute fire theirs when they are resumed. It is for
// tests: without Options.Skip it is an error.
func (l *Local) MoveClock(at time.Time) error {
	c := &l.clock
	if c.skip == nil {
		return errNoTestClock
	}
	c.mu.Lock()
	c.offset = max(c.offset, at.UnixMilli()-time.Now().UnixMilli())
	c.mu.Unlock()
	for _, x := range l.executions() {
		x.send(driverMessage{})
	}
	return nil
}

// now is Unix time in milliseconds.
func (c *clock) now() int64 {
	at := time.Now().UnixMilli()
	if c.skip == nil {
		return at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return at + c.offset
}

// untilLocked is until for a caller that holds mu.
func (c *clock) untilLocked(at int64) time.Duration {
	return time.Duration(at-c.offset-time.Now().UnixMilli()) * time.Millisecond
}

// until returns how long it is until a time.
func (c *clock) until(at int64) time.Duration {
	return time.Duration(at-c.now()) * time.Millisecond
}

// markBusy marks the execution as active.
func (c *clock) markBusy(x *Execution) {
	if c.skip == nil && !c.rests {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.idle, x)
}

// recheck lets an idle execution check the clock again after another one has ended.
func (c *clock) recheck() {
	if c.skip == nil {
		return
	}
	c.mu.Lock()
	var one *Execution
	for x := range c.idle {
		one = x
		break
	}
	c.mu.Unlock()
	if one != nil {
		one.send(driverMessage{})
	}
}

// skipRetryInterval is how long Skip waits after a refusal before it is called again.
const skipRetryInterval = time.Millisecond

// retryLater has skip called again soon, unless that is scheduled already.
func (c *clock) retryLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retrying {
		return
	}
	c.retrying = true
	time.AfterFunc(skipRetryInterval, func() {
		c.mu.Lock()
		c.retrying = false
		c.mu.Unlock()
		c.recheck()
	})
}

// enterIdle marks the execution as idle if it is, and advances the clock to the first timer if all executions of the
// Local are idle. The caller drives x.
func (x *Execution) enterIdle() {
	c := &x.local.clock
	if c.skip == nil && !c.rests || len(x.m.active) > 0 || x.messages.hasMessages() {
		return
	}
	r := idleState{open: x.m.run.Interrupts(), seq: x.m.seq, waits: x.onlyWaits()}
	_, r.due, _ = x.m.run.NextTimer()
	for _, k := range x.m.run.OpenChildren() {
		if k.Active() {
			r.children = append(r.children, k.Start.Run)
		}
	}
	if c.skip == nil {
		x.rest(r)
		return
	}
	first, open := x.local.markIdle(x, r)
	switch {
	case first == nil:
		return
	case !c.skip(open):
		c.retryLater()
		return
	}
	c.mu.Lock()
	is, still := c.idle[first]
	if still {
		c.offset = max(c.offset, is.due-time.Now().UnixMilli())
	}
	c.mu.Unlock()
	if still {
		first.send(driverMessage{})
	}
}

// markIdle marks x as idle. If all executions are idle, it returns the one with the first timer, and what each waits
// for, by run.
func (l *Local) markIdle(x *Execution, r idleState) (first *Execution, open map[string][]engine.Interrupt) {
	l.mu.Lock()
	starting, held := len(l.loading), len(l.held)
	l.mu.Unlock()
	c := &l.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(map[*Execution]idleState)
	}
	c.idle[x] = r
	if starting > 0 || len(c.idle) < held {
		return nil, nil
	}
	open = make(map[string][]engine.Interrupt, len(c.idle))
	for y, is := range c.idle {
		open[y.ID] = is.open
		if is.due > 0 && (first == nil || is.due < c.idle[first].due) {
			first = y
		}
	}
	for _, is := range c.idle {
		for _, child := range is.children {
			if _, rests := open[child]; !rests { // it is about to start, or to report its end
				return nil, nil
			}
		}
	}
	return first, open
}
