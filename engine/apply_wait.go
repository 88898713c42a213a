package engine

import (
	"container/heap"
	"strings"
)

func (r *Run) applyWaiting(e *NodeWaiting) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which is not there", e.Kind(), e.Path)
	}
	switch n.phase {
	case executing:
		if sharing(e.Interrupts) { // its turn lasts until the child has ended
			n.phase = asking
			r.count(n, -1)
		} else {
			r.yield(n, asking)
		}
		r.limitWait(n)
	case readied: // before its start
		r.breaks = drop(r.breaks, n)
		n.phase = breaking
	case held: // after its end
		r.breaks = drop(r.breaks, n)
	default:
		return invalid("%s: node %s is %s", e.Kind(), e.Path, n.phase)
	}
	n.status = Waiting
	answered := false
	for _, i := range e.Interrupts {
		if i.Kind == AwaitChild && n.scope.torn() { // it is not to begin any more
			continue
		}
		if n.ext != nil && n.ext.answers[i.ID] != nil {
			answered = true
			continue
		}
		if a, given := r.leave(&i); given {
			put(&n.more().answers, i.ID, &a)
			answered = true
			continue
		}
		r.open(n, i)
	}
	switch {
	case r.stray(n):
	case answered && n.phase == asking:
		r.makeReady(n)
	}
	return nil
}

// stray lists a node for cancellation that was suspended after its scope began
// to be torn down.
func (r *Run) stray(n *nodeState) bool {
	if !n.scope.torn() {
		return false
	}
	if !n.parental() { // else once its children have ended
		r.toCancel = append(r.toCancel, n)
	}
	return true
}

// open adds an interrupt; one that is open already stays.
func (r *Run) open(n *nodeState, i Interrupt) {
	if r.byID[i.ID] != nil {
		return
	}
	o := &openInterrupt{Interrupt: i, node: n}
	r.byID[i.ID] = o
	r.interrupts = append(r.interrupts, o)
	n.more().waiting++
	r.asking++
	if i.Kind == AwaitChild {
		r.born(n)
	}
	if i.Due > 0 {
		r.arm(i.ID, i.Due)
	}
}

func (r *Run) resolveInterrupt(id string, a Answer) error {
	o := r.byID[id]
	if o == nil {
		return invalid("interrupt %s is not open", id)
	}
	r.close(o)
	n := o.node
	put(&n.more().answers, id, &a)
	r.raise(&o.Interrupt, a)
	switch n.phase {
	case breaking:
		n.passed = true
		r.makeReady(n)
	case held:
		r.finish(n, Completed)
	case asking:
		if !n.parental() || !n.scope.torn() {
			r.makeReady(n)
		}
	default: // the answer is there when the node looks for it
	}
	return r.allow(&o.Interrupt, a)
}

// close removes an open interrupt and its timer.
func (r *Run) close(o *openInterrupt) {
	delete(r.byID, o.ID)
	delete(r.due, o.ID)
	for i, x := range r.interrupts {
		if x == o {
			r.interrupts = append(r.interrupts[:i], r.interrupts[i+1:]...)
			break
		}
	}
	o.node.ext.waiting--
	r.asking--
	if o.Kind == AwaitChild {
		r.gone(o.node)
	}
}

func (r *Run) applyTimer(e *TimerFired) error {
	if _, ok := r.due[e.ID]; !ok {
		return invalid("timer %s is not set", e.ID)
	}
	if o := r.byID[e.ID]; o != nil && o.Kind == AwaitChild { // resolved by the child's end
		delete(r.due, e.ID)
		o.late = true
		return nil
	}
	if r.byID[e.ID] != nil {
		return r.resolveInterrupt(e.ID, Answer{})
	}
	if strings.HasSuffix(e.ID, timeoutTimer) {
		return r.applyTimeout(e)
	}
	delete(r.due, e.ID)
	n, err := r.active(e.ID, retrying, e)
	if err != nil {
		return err
	}
	n.entered = false
	r.makeReady(n)
	return nil
}

func (r *Run) applyPulling(e *NodePulling) error {
	n, err := r.active(e.Path, executing, e)
	if err != nil {
		return err
	}
	n.more().port = e.Port
	r.yield(n, pulling)
	r.limitWait(n)
	if r.stray(n) {
		return nil
	}
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if ed := &n.scope.plan.edges[i]; ed.lazy && ed.toPort == e.Port {
			r.want(&n.scope.nodes[ed.from])
		}
	}
	r.wake(n)
	return nil
}

// timer is an entry of the timer heap; it counts only while r.due agrees.
type timer struct {
	at int64
	id string
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop removes the last element.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

func (r *Run) arm(id string, at int64) {
	r.due[id] = at
	heap.Push(&r.timers, timer{at, id})
}

// NextTimer is the timer that fires first, in Unix milliseconds.
func (r *Run) NextTimer() (id string, at int64, ok bool) {
	for len(r.timers) > 0 {
		t := r.timers[0]
		if r.due[t.id] == t.at {
			return t.id, t.at, true
		}
		heap.Pop(&r.timers)
	}
	return "", 0, false
}
