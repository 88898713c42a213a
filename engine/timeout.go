package engine

import "strings"

// timeoutTimer is the suffix of the timer id that limits the time of a suspended attempt:
// while it waits for an answer, a timer, a lazy port or the iterations of its body. While
// its function executes, the runner enforces the limit; a child run has its own limit.
const timeoutTimer = ":timeout"

// runTimer is the id of the timer that limits the time of the whole run: that of a node
// without a path.
const runTimer = timeoutTimer

// startRunTimer starts the timer of the whole run, if its flow has a timeout.
func (r *Run) startRunTimer() {
	if total := r.plan.Flow.Timeout; total > 0 {
		r.setTimer(runTimer, r.now+max(total.Milliseconds(), 1))
	}
}

// isOverdue reports whether the time of the whole run is over and its timer has not fired: what
// came first was an answer to a paused run, or the run continues after a crash.
func (r *Run) isOverdue() bool {
	at, limited := r.due[runTimer]
	return limited && r.now >= at
}

// nodeTimers returns the number of timers that continue the run, without the one that ends it.
func (r *Run) nodeTimers() int {
	if _, limited := r.due[runTimer]; limited {
		return len(r.due) - 1
	}
	return len(r.due)
}

// timeOutRun cancels everything that is in progress; the run fails once nothing executes.
func (r *Run) timeOutRun() {
	delete(r.due, runTimer)
	if r.root.cancelled() {
		return
	}
	r.cancelScope(r.root, &Error{
		Code: CodeRunTimeout, Permanent: true,
		Message: "the run took longer than " + r.plan.Flow.Timeout.String(),
		Hint:    "increase `timeout:` of the flow and start the run again, or continue this one with `weir retry`",
	})
}

// startWaitTimer starts the timeout timer of a suspended node.
func (r *Run) startWaitTimer(n *nodeState) {
	total := n.plan.Def.Timeout.Total
	if total > 0 && !n.scope.cancelled() {
		r.setTimer(n.path()+timeoutTimer, n.started+max(total.Milliseconds(), 1))
	}
}

// stopWaitTimer removes the timeout timer.
func (r *Run) stopWaitTimer(n *nodeState) {
	if n.plan.Def.Timeout.Total > 0 {
		delete(r.due, n.path()+timeoutTimer)
		r.timedOut = removeNode(r.timedOut, n)
	}
}

// applyTimeout lists a node that timed out, so that it fails.
func (r *Run) applyTimeout(e *TimerFired) error {
	if e.ID == runTimer {
		r.timeOutRun()
		return nil
	}
	n := r.node(strings.TrimSuffix(e.ID, timeoutTimer))
	if n == nil {
		return invalid("%s names %s, which does not exist", e.Kind(), e.ID)
	}
	delete(r.due, e.ID)
	suspended := n.phase == phaseWaiting && !n.hasOpenChild() || n.phase == phasePulling || n.phase == phaseExpanding && !r.hasFailedIteration(n)
	if suspended && !n.scope.cancelled() {
		r.timedOut = append(r.timedOut, n)
	}
	return nil
}

func decideTimedOut(n *nodeState) Event {
	return &NodeFailed{Path: n.path(), Error: NewTimeoutError(
		n.path(), int(n.attempt), n.plan.Def.Timeout.Total.String(), "in total; at the end it was waiting",
	)}
}

// NewTimeoutError returns the failure of an attempt that took longer than a limit of its node, such as "20s"; how
// says which one: "in total", "without progress".
func NewTimeoutError(path string, attempt int, limit, how string) *Error {
	return &Error{
		Code: CodeTimeout, Node: path, Attempt: attempt,
		Message: "the node took longer than " + limit + " " + how,
		Hint:    "increase `timeout:` of the node, or add `retry:`",
	}
}
