package engine

import "strings"

// timeoutTimer ends the id of the timer that bounds an attempt's time while no
// function executes for it: while it waits for an answer, a timer, a lazy port or
// the iterations of its body. While its function executes the runner bounds it, and
// a child run has a time of its own.
const timeoutTimer = ":timeout"

// limit sets the timer of a node that is suspended.
func (r *Run) startWaitTimer(n *nodeState) {
	total := n.plan.Def.Timeout.Total
	if total > 0 && !n.scope.cancelled() {
		r.setTimer(n.path()+timeoutTimer, n.started+max(total.Milliseconds(), 1))
	}
}

// stopWaitTimer removes it again.
func (r *Run) stopWaitTimer(n *nodeState) {
	if n.plan.Def.Timeout.Total > 0 {
		delete(r.due, n.path()+timeoutTimer)
		r.timedOut = removeNode(r.timedOut, n)
	}
}

// applyTimeout lists a node whose time is up, so that it fails.
func (r *Run) applyTimeout(e *TimerFired) error {
	n := r.node(strings.TrimSuffix(e.ID, timeoutTimer))
	if n == nil {
		return invalid("%s names %s, which is not there", e.Kind(), e.ID)
	}
	delete(r.due, e.ID)
	suspended := n.phase == phaseWaiting && !n.hasOpenChild() || n.phase == phasePulling || n.phase == phaseExpanding && !r.hasFailedIteration(n)
	if suspended && !n.scope.cancelled() {
		r.timedOut = append(r.timedOut, n)
	}
	return nil
}

func decideTimedOut(n *nodeState) Event {
	return &NodeFailed{Path: n.path(), Error: &Error{
		Code: CodeTimeout, Node: n.path(), Attempt: int(n.attempt),
		Message: "the node took longer than " + n.plan.Def.Timeout.Total.String() + " in total, of which it waited at the end",
		Hint:    "raise `timeout:` on the node, or add `retry:`",
	}}
}
