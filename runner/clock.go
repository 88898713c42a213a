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

	mu      sync.Mutex
	ahead   int64 // milliseconds, of the machine's time
	resting map[*Execution]rest
}

// rest is how an execution waits.
type rest struct {
	due  int64 // when its next timer is, Unix milliseconds; 0 is none
	open []engine.Interrupt
	kids []string // child runs that go on
}

// now is Unix time in milliseconds.
func (c *clock) now() int64 {
	at := time.Now().UnixMilli()
	if c.skip == nil {
		return at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return at + c.ahead
}

// until is how long a moment is away.
func (c *clock) until(at int64) time.Duration {
	return time.Duration(at-c.now()) * time.Millisecond
}

// stir says that the execution has something to do.
func (c *clock) stir(x *Execution) {
	if c.skip == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.resting, x)
}

// look has the clock looked at again by one that rests, where another has left
// since.
func (c *clock) look() {
	if c.skip == nil {
		return
	}
	c.mu.Lock()
	var one *Execution
	for x := range c.resting {
		one = x
		break
	}
	c.mu.Unlock()
	if one != nil {
		one.post(mail{})
	}
}

// askAgain is how long after a no Skip is asked again.
const askAgain = time.Millisecond

// rest notes that the execution waits, if it does, and puts the clock forward to
// the first timer if all that the Local holds do. The caller drives x.
func (x *Execution) rest() {
	c := &x.local.clock
	if c.skip == nil || len(x.m.active) > 0 || x.box.waits() {
		return
	}
	r := rest{open: x.m.run.Interrupts()}
	_, r.due, _ = x.m.run.NextTimer()
	for _, k := range x.m.run.OpenChildren() {
		if k.Goes() {
			r.kids = append(r.kids, k.Start.Run)
		}
	}
	first, open := x.local.calm(x, r)
	switch {
	case first == nil:
		return
	case !c.skip(open):
		time.AfterFunc(askAgain, func() { first.post(mail{}) })
		return
	}
	c.mu.Lock()
	is, still := c.resting[first]
	if still {
		c.ahead = max(c.ahead, is.due-time.Now().UnixMilli())
	}
	c.mu.Unlock()
	if still {
		first.post(mail{})
	}
}

// calm notes that x rests. Where everything does, it returns the execution whose
// timer is the first, and what all of them wait for, by run.
func (l *Local) calm(x *Execution, r rest) (first *Execution, open map[string][]engine.Interrupt) {
	l.mu.Lock()
	starting, held := len(l.taking), len(l.held)
	l.mu.Unlock()
	c := &l.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting == nil {
		c.resting = make(map[*Execution]rest)
	}
	c.resting[x] = r
	if starting > 0 || len(c.resting) < held {
		return nil, nil
	}
	open = make(map[string][]engine.Interrupt, len(c.resting))
	for y, is := range c.resting {
		open[y.ID] = is.open
		if is.due > 0 && (first == nil || is.due < c.resting[first].due) {
			first = y
		}
	}
	for _, is := range c.resting {
		for _, kid := range is.kids {
			if _, rests := open[kid]; !rests { // it is about to begin, or to say how it ended
				return nil, nil
			}
		}
	}
	return first, open
}
