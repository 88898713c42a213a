package runner

import (
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// clock is a Local's time. It runs with the machine's, except that Skip puts it
// forward where there is nothing to do but to wait.
type clock struct {
	skip func(r *engine.Run) bool

	mu      sync.Mutex
	ahead   int64                // milliseconds, of the machine's time
	resting map[*Execution]int64 // when the next timer of each is due; 0 is none
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

// rest notes that the execution waits, if it does, and puts the clock forward to
// the first timer if all that the Local holds do. The caller drives x.
func (x *Execution) rest() {
	l := x.local
	if l.clock.skip == nil || len(x.m.active) > 0 || x.box.waits() {
		return
	}
	_, due, _ := x.m.run.NextTimer()
	l.mu.Lock()
	starting, held := len(l.taking), len(l.held)
	l.mu.Unlock()
	c := &l.clock
	c.mu.Lock()
	if c.resting == nil {
		c.resting = make(map[*Execution]int64)
	}
	c.resting[x] = due
	var first *Execution
	for y, at := range c.resting {
		if at > 0 && (first == nil || at < c.resting[first]) {
			first = y
		}
	}
	all := starting == 0 && len(c.resting) == held
	c.mu.Unlock()
	if !all || first == nil || !c.skip(x.m.run) {
		return
	}
	c.mu.Lock()
	at, still := c.resting[first]
	if still {
		c.ahead = max(c.ahead, at-time.Now().UnixMilli())
	}
	c.mu.Unlock()
	if still {
		first.post(mail{})
	}
}
