package runner

import (
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// clock is a Local's time. It runs with the machine's, except that Skip puts it
// forward where there is nothing to do but to wait.
type clock struct {
	skip func(open map[string][]engine.Interrupt) bool

	mu     sync.Mutex
	offset int64 // milliseconds, of the machine's time
	idle   map[*Execution]idleState
}

// idleState is how an execution waits.
type idleState struct {
	due      int64 // when its next timer is, Unix milliseconds; 0 is none
	open     []engine.Interrupt
	children []string // child runs that go on
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

// until is how long a moment is away.
func (c *clock) until(at int64) time.Duration {
	return time.Duration(at-c.now()) * time.Millisecond
}

// markBusy says that the execution has something to do.
func (c *clock) markBusy(x *Execution) {
	if c.skip == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.idle, x)
}

// recheck has the clock looked at again by one that rests, where another has left
// since.
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

// skipRetryInterval is how long after a no Skip is asked again.
const skipRetryInterval = time.Millisecond

// enterIdle notes that the execution waits, if it does, and puts the clock forward to
// the first timer if all that the Local holds do. The caller drives x.
func (x *Execution) enterIdle() {
	c := &x.local.clock
	if c.skip == nil || len(x.m.active) > 0 || x.messages.hasMessages() {
		return
	}
	r := idleState{open: x.m.run.Interrupts()}
	_, r.due, _ = x.m.run.NextTimer()
	for _, k := range x.m.run.OpenChildren() {
		if k.Active() {
			r.children = append(r.children, k.Start.Run)
		}
	}
	first, open := x.local.markIdle(x, r)
	switch {
	case first == nil:
		return
	case !c.skip(open):
		time.AfterFunc(skipRetryInterval, func() { first.send(driverMessage{}) })
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

// markIdle notes that x rests. Where everything does, it returns the execution whose
// timer is the first, and what all of them wait for, by run.
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
		for _, kid := range is.children {
			if _, rests := open[kid]; !rests { // it is about to begin, or to say how it ended
				return nil, nil
			}
		}
	}
	return first, open
}
