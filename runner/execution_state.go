package runner

import (
	"fmt"
	"sync/atomic"

	"github.com/weir-run/weir/engine"
)

// executionState is what an execution does. The driver changes it, except for draining, which any goroutine may set.
type executionState uint32

const (
	// acquiring: the commit that makes the run, or acquires its lease, is not durable.
	acquiring executionState = iota
	// running: attempts of nodes execute, or something else of this process is in progress for the run.
	running
	// waiting: a timer, a child run, an answer or an event continues the run.
	waiting
	// cancelling: the run, or a part of it, is being cancelled or has failed: what it no longer needs is being stopped.
	cancelling
	// draining: this process stops executing the run: nothing more starts, and attempts in flight end.
	draining
	// releasing: nothing is in flight; the lease is being released, and further messages are refused.
	releasing
	// ended: the execution has ended, and done is closed or about to be.
	ended
)

// String returns the name of the state.
func (s executionState) String() string {
	return [...]string{"acquiring", "running", "waiting", "cancelling", "draining", "releasing", "ended"}[s]
}

// mayBecome reports whether a transition is legal. Only a run that is neither draining nor ending changes between
// running, waiting and cancelling; an execution whose run was not made ends without releasing a lease.
func (s executionState) mayBecome(next executionState) bool {
	switch s {
	case acquiring:
		return next == running || next == draining || next == ended
	case running, waiting, cancelling:
		return next != s && next != acquiring && next != ended
	case draining:
		return next == releasing
	case releasing:
		return next == ended
	case ended:
		return false
	}
	return false
}

// stateCell holds the state of an execution; any goroutine.
type stateCell struct{ v atomic.Uint32 }

func (c *stateCell) load() executionState { return executionState(c.v.Load()) }

func (c *stateCell) swap(from, to executionState) bool {
	return c.v.CompareAndSwap(uint32(from), uint32(to))
}

// become changes the state; the driver only. It returns the state afterwards, which is draining if another goroutine
// has set that and next is not the end. Any other transition that mayBecome refuses is a programmer's error.
func (c *stateCell) become(next executionState) executionState {
	for {
		s := c.load()
		switch {
		case s == next || s == draining && next < draining:
			return s
		case !s.mayBecome(next):
			panic(fmt.Sprintf("runner: an execution is %s and cannot become %s", s, next))
		case c.swap(s, next):
			return next
		}
	}
}

// drain lets nothing more start; any goroutine. An execution that is about to end is left alone.
func (c *stateCell) drain() {
	for s := c.load(); s < draining && !c.swap(s, draining); s = c.load() {
	}
}

// draining reports whether nothing more may start: this process stops, the tree of the run rests, or the Local only
// records.
func (x *Execution) draining() bool { return x.local.o.RecordOnly || x.state.load() >= draining }

// progress is what decides the next state of an execution, as of when its driver has handled all messages.
type progress struct {
	failed    bool // an error ends the execution
	unmade    bool // the commit that makes the run is not durable
	draining  bool
	rests     bool // the run has ended, or only people, events or another process can continue it
	attempts  bool // attempts are executing
	starts    bool // attempts are about to start
	children  bool // child runs are being started or resumed, or questions of them settled
	described bool // data is being described
	cancelled bool // a cancellation is not durable in all child runs
	stopping  bool // the run or a part of it is being cancelled, or has failed
}

// progress returns the facts; the driver only.
func (x *Execution) progress() progress {
	s := x.m.run.Status()
	p := progress{
		failed: x.err != nil, unmade: x.creation != nil, draining: x.draining(),
		attempts: len(x.m.active) > 0, starts: len(x.m.starts)+len(x.m.direct) > 0,
		children: x.children.Joining() || x.settling > 0, described: x.describer.running > 0,
		cancelled: len(x.cancelAcks) > 0, stopping: x.m.run.Cancelling(),
	}
	p.rests = s.Ended() || s == engine.Paused && !p.children || x.m.program.recorded && x.onlyCancelsChildren()
	return p
}

// busy reports whether something of this process is in progress for the run.
func (p *progress) busy() bool {
	return p.attempts || p.starts || p.children || p.described || p.cancelled
}

// next returns the state that follows.
func (p *progress) next() executionState {
	switch {
	case p.failed && p.unmade:
		return ended
	case p.failed, p.draining && !p.attempts, !p.draining && p.rests && !p.described:
		return releasing
	case p.draining:
		return draining
	case p.stopping:
		return cancelling
	case p.busy():
		return running
	}
	return waiting
}
