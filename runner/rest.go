package runner

import (
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
)

// resting describes the executions of a tree of runs that end because they only wait for timers.
type resting struct {
	due  int64                // the first timer, Unix milliseconds
	runs map[*Execution]int64 // the executions, with the newest commit of each as of the decision
}

// RestsUntil returns the first timer of the run and its child runs; ok is false unless the execution ended because all of
// them only waited, see Options.Rest. It waits until the executions of the tree have ended. A time in the past means that
// something happened to one of them meanwhile, so that the run continues at once.
func (x *Execution) RestsUntil() (at time.Time, ok bool) {
	<-x.done
	r := x.resting.Load()
	if r == nil || x.m.run.Status().Ended() || x.m.run.Status() == engine.Paused {
		return at, false
	}
	at = time.UnixMilli(r.due)
	// order: each execution can only make the time earlier.
	for y, seq := range r.runs {
		if <-y.done; y.m.seq != seq {
			at = time.UnixMilli(0)
		}
	}
	return at, true
}

// rest ends the executions of the tree of x if all of them only wait, none for a timer that fires soon. The caller drives
// x, which is idle as r says.
func (x *Execution) rest(r idleState) {
	if !x.onlyWaits() {
		return
	}
	l := x.local
	held, loading := l.treeOf(x.ID)
	c := &l.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(map[*Execution]idleState)
	}
	c.idle[x] = r
	if loading || x.draining() {
		return
	}
	rests := &resting{runs: make(map[*Execution]int64, len(held))}
	// order: the executions are collected, and the earliest timer is the same in any order.
	for _, y := range held {
		is, idle := c.idle[y]
		if !idle {
			return
		}
		for _, child := range is.children {
			if held[child] == nil { // it is about to start, or to report its end
				return
			}
		}
		if is.due > 0 && (rests.due == 0 || is.due < rests.due) {
			rests.due = is.due
		}
		rests.runs[y] = is.seq
	}
	if rests.due == 0 || c.untilLocked(rests.due) <= l.o.Rest {
		return
	}
	for y := range rests.runs {
		y.resting.Store(rests)
		y.state.drain()
		go y.send(driverMessage{}) // which locks the clock
	}
}

// onlyWaits reports whether the run waits, and nothing of this process is in progress for it.
func (x *Execution) onlyWaits() bool {
	p := x.progress()
	return x.m.run.Status() == engine.Running && x.m.run.Activity() != engine.Executing && !p.busy()
}

// treeOf returns the executions of the tree of a run, by id, and whether another one of it is being loaded.
func (l *Local) treeOf(run string) (held map[string]*Execution, loading bool) {
	tree := treeID(run)
	held = make(map[string]*Execution)
	l.mu.Lock()
	defer l.mu.Unlock()
	// order: the executions are collected in a map.
	for id, y := range l.held {
		if treeID(id) == tree {
			held[id] = y
		}
	}
	// order: the answer is the same for each.
	for id := range l.loading {
		loading = loading || treeID(id) == tree
	}
	return held, loading
}

// recheckTree lets the executions of a tree check whether they rest, after one of them was added or removed.
func (l *Local) recheckTree(run string) {
	if !l.clock.rests {
		return
	}
	held, _ := l.treeOf(run)
	// order: each checks for itself.
	for _, x := range held {
		x.send(driverMessage{})
	}
}

// treeID is the part of the id of a run that all runs of its tree share; see childRunID.
func treeID(run string) string {
	tree, _, _ := strings.Cut(run, ".")
	return tree
}

// restedAt returns the number of the newest event of a run that has ended or paused, 0 for another.
func restedAt(m *machine) int64 {
	if m.run.Start == nil || !m.run.Status().Ended() && m.run.Status() != engine.Paused {
		return 0
	}
	return m.first - 1
}

// reportRest calls Options.Rested if the run has ended or paused, and the execution has added events.
func (x *Execution) reportRest() {
	if x.local.o.Rested == nil || x.err != nil || x.creation != nil {
		return
	}
	if at := restedAt(x.m); at > x.restedAfter {
		x.local.o.Rested(x.ID, x.m.program.Flow, x.restedAfter)
	}
}

// wasStopped reports whether an execution that this process drained ends before its run has ended, paused or come to rest.
func (x *Execution) wasStopped() bool {
	s := x.m.run.Status()
	return !x.local.o.RecordOnly && x.resting.Load() == nil && !s.Ended() && s != engine.Paused
}

// Suspend stops a run and its child runs where they are, as Close does for all: no further node or effect starts, and
// effects in flight have the given time to end by themselves before they are cancelled. It returns at once; the
// executions end when nothing is in flight.
func (l *Local) Suspend(run string, drain time.Duration) {
	held, _ := l.treeOf(run)
	// order: each is stopped alike.
	for _, x := range held {
		x.suspend(drain > 0)
		if drain > 0 {
			time.AfterFunc(drain, func() { x.suspend(false) })
		}
	}
}

func (x *Execution) suspend(drain bool) {
	x.state.drain()
	x.command(func(*engine.Run) (engine.Event, error) {
		x.stopAttempts(drain)
		return nil, nil
	})
}
