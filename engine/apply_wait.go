package engine

import (
	"container/heap"
	"strings"
)

func (r *Run) applyWaiting(e *NodeWaiting) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which does not exist", e.Kind(), e.Path)
	}
	switch n.phase {
	case phaseExecuting:
		if sharesContext(e.Interrupts) { // the node keeps its contexts until the child has ended
			n.phase = phaseWaiting
			r.countExecuting(n, -1)
		} else {
			r.endEntry(n, phaseWaiting)
		}
		r.startWaitTimer(n)
	case phaseReady: // before its start
		r.breaks = removeNode(r.breaks, n)
		n.phase = phaseBreakBefore
	case phaseBreakAfter: // after its end
		r.breaks = removeNode(r.breaks, n)
	default:
		return invalid("%s: node %s is %s", e.Kind(), e.Path, n.phase)
	}
	n.status = Waiting
	answered := false
	for _, i := range e.Interrupts {
		if i.Kind == AwaitChild && n.scope.cancelled() { // it must no longer start
			continue
		}
		if n.ext != nil && n.ext.answers[i.ID] != nil {
			if r.awaitAgain(n, &i) {
				continue
			}
			answered = true
			continue
		}
		if a, given := r.approvalFor(&i); given {
			setInMap(&n.ensureExt().answers, i.ID, &a)
			answered = true
			continue
		}
		r.addInterrupt(n, i)
	}
	switch {
	case r.listIfCancelled(n):
	case answered && n.phase == phaseWaiting:
		r.makeReady(n)
	}
	return nil
}

// awaitAgain opens the interrupt of a child run that has continued after its failure, with the report that made the run
// continue. It reports false for an interrupt with an outcome. The child of a fork is another run and has not reported.
func (r *Run) awaitAgain(n *nodeState, i *Interrupt) bool {
	a := n.ext.answers[i.ID]
	if !a.awaited() {
		return false
	}
	delete(n.ext.answers, i.ID)
	if len(n.ext.answers) == 0 {
		n.ext.answers = nil // as in a run that is restored from a snapshot
	}
	r.addInterrupt(n, *i)
	if a.Child.Run == i.Child.Run {
		r.byID[i.ID].report = a.Child
		r.noteIncreases(r.byID[i.ID])
	}
	return true
}

// listIfCancelled lists a node for cancellation that was suspended after the cancellation
// of its scope began.
func (r *Run) listIfCancelled(n *nodeState) bool {
	if !n.scope.cancelled() {
		return false
	}
	if !n.hasOpenChild() { // else once its children have ended
		r.toCancel = append(r.toCancel, n)
	}
	return true
}

// addInterrupt adds an interrupt. If one with its id is open, that one stays.
func (r *Run) addInterrupt(n *nodeState, i Interrupt) {
	if r.byID[i.ID] != nil {
		return
	}
	o := &openInterrupt{Interrupt: i, node: n}
	r.byID[i.ID] = o
	r.interrupts = append(r.interrupts, o)
	r.noteIncreases(o)
	n.ensureExt().waiting++
	r.waitingNodes++
	if i.Kind == AwaitChild {
		r.childOpened(n)
	}
	if i.Due > 0 {
		r.setTimer(i.ID, i.Due)
	}
}

func (r *Run) resolveInterrupt(id string, a Answer) error {
	o := r.byID[id]
	if o == nil {
		return invalid("interrupt %s is not open", id)
	}
	r.removeInterrupt(o)
	n := o.node
	setInMap(&n.ensureExt().answers, id, &a)
	r.applyBudgetAnswer(&o.Interrupt, a)
	switch n.phase {
	case phaseBreakBefore:
		n.breakPassed = true
		r.makeReady(n)
	case phaseBreakAfter:
		r.endNode(n, Completed)
	case phaseWaiting:
		if !n.hasOpenChild() || !n.scope.cancelled() {
			r.makeReady(n)
		}
	default: // the answer is available when the node resumes
	}
	return r.applyApproval(&o.Interrupt, a)
}

// removeInterrupt removes an open interrupt and its timer.
func (r *Run) removeInterrupt(o *openInterrupt) {
	delete(r.byID, o.ID)
	delete(r.due, o.ID)
	for i, x := range r.interrupts {
		if x == o {
			r.interrupts = append(r.interrupts[:i], r.interrupts[i+1:]...)
			break
		}
	}
	o.node.ext.waiting--
	r.waitingNodes--
	if o.Kind == AwaitChild {
		r.childClosed(o.node)
	}
}

func (r *Run) applyTimer(e *TimerFired) error {
	if _, ok := r.due[e.ID]; !ok {
		return invalid("timer %s is not set", e.ID)
	}
	if o := r.byID[e.ID]; o != nil && o.Kind == AwaitChild { // resolved when the child ends
		delete(r.due, e.ID)
		o.timedOut = true
		return nil
	}
	if r.byID[e.ID] != nil {
		return r.resolveInterrupt(e.ID, Answer{})
	}
	if strings.HasSuffix(e.ID, timeoutTimer) {
		return r.applyTimeout(e)
	}
	delete(r.due, e.ID)
	n, err := r.nodeInPhase(e.ID, phaseRetrying, e)
	if err != nil {
		return err
	}
	n.entered = false
	r.makeReady(n)
	return nil
}

func (r *Run) applyPulling(e *NodePulling) error {
	n, err := r.nodeInPhase(e.Path, phaseExecuting, e)
	if err != nil {
		return err
	}
	n.ensureExt().port = e.Port
	r.endEntry(n, phasePulling)
	r.startWaitTimer(n)
	if r.listIfCancelled(n) {
		return nil
	}
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if ed := &n.scope.plan.edges[i]; ed.lazy && ed.toPort == e.Port {
			r.markNeeded(&n.scope.nodes[ed.from])
		}
	}
	r.readyPulled(n)
	return nil
}

// timer is an entry of the timer heap. It is valid only while r.due has the same time for
// it.
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

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

func (r *Run) setTimer(id string, at int64) {
	r.due[id] = at
	heap.Push(&r.timers, timer{at, id})
}

// NextTimer returns the timer that fires first and its time in Unix milliseconds.
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
