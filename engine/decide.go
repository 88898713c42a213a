package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/flow"
)

// Decide returns the next command that follows from the state of the run, or nil if the run
// waits for something outside. The command is an event: apply it, journal it, act on it
// once it is durable, and call Decide again.
func (r *Run) Decide() Event {
	if r.Start == nil || r.ended != Pending {
		return nil
	}
	if r.isOverdue() {
		return &TimerFired{ID: runTimer}
	}
	switch {
	case len(r.toCancel) > 0:
		return &NodeCancelled{Path: r.toCancel[0].path()}
	case len(r.failures) > 0:
		return r.decideFailure(r.failures[0])
	case len(r.cancelling) > 0:
		if e := r.decideScopeCancel(); e != nil {
			return e
		}
	}
	switch {
	case len(r.skips) > 0:
		return &NodeSkipped{Path: r.skips[0].path()}
	case len(r.conflicts) > 0:
		return r.decideConflict(r.conflicts[0])
	case len(r.timedOut) > 0:
		return decideTimedOut(r.timedOut[0])
	case len(r.breaks) > 0:
		return decideBreak(r.breaks[0])
	case len(r.unneeded) > 0:
		return &NodeNotNeeded{Path: r.unneeded[0].path()}
	}
	if e := r.decideIteration(); e != nil {
		return e
	}
	return r.decideStart()
}

// Step applies an event and all commands that follow from it, and appends them to out.
// After an error the run must be discarded.
func (r *Run) Step(out []Event, e Event) ([]Event, error) {
	for e != nil {
		if err := r.Apply(e); err != nil {
			return out, err
		}
		out = append(out, e)
		e = r.Decide()
	}
	return out, nil
}

// FinishedScope names a scope with only ended nodes. The runner must evaluate its outputs
// and apply them as IterationCompleted, or as RunCompleted for "".
func (r *Run) FinishedScope() (path string, ok bool) {
	if len(r.finished) == 0 || r.ended != Pending {
		return "", false
	}
	return r.finished[0].name(), true
}

func (r *Run) decideStart() Event {
	n, grants := r.nextStart()
	if n == nil {
		return nil
	}
	forks := r.forksFor(n)
	if id := r.missingContext(n, forks); id != "" {
		return &NodeFailed{Path: n.path(), Error: &Error{
			Code: CodeContext, Node: n.path(), Permanent: true,
			Message: fmt.Sprintf("the context %q of the incoming handle does not exist", id),
			Hint:    "take the handle from a port of type context of a node of this run",
		}}
	}
	if n.entered {
		return &NodeResumed{Path: n.path(), Grants: grants, Forks: forks}
	}
	return &NodeStarted{Path: n.path(), Attempt: int(n.attempt) + 1, Grants: grants, Forks: forks}
}

func (r *Run) decideIteration() Event {
	for len(r.expandable) > 0 {
		n := r.expandable[0]
		if n.phase == phaseExpanding && !n.scope.cancelled() {
			x := n.ext.expansion
			if x.running < x.concurrency && x.next < len(x.items) && !r.hasFailedIteration(n) {
				return &IterationStarted{Path: n.path() + "#" + itoa(n.ext.earlierIterations+x.next+1)}
			}
		}
		r.expandable = r.expandable[1:]
	}
	return nil
}

// hasFailedIteration reports whether an iteration of the composite failed; where each ends
// alone, whether the composite is decided.
func (r *Run) hasFailedIteration(n *nodeState) bool {
	if x := n.ext.expansion; x.separate != nil {
		return x.separate.decided()
	}
	for _, s := range r.cancelling {
		if s.owner == n {
			return true
		}
	}
	return false
}

func (r *Run) decideConflict(n *nodeState) Event {
	hint := "join the branches with a merge node, or make them exclusive"
	for _, p := range n.plan.Spec.PortsOf(n.plan.Def).In {
		if p.Exclusive { // a merge node
			hint = "collect all values with mode: list, or make the branches exclusive, so that only one of them runs"
		}
	}
	return &NodeFailed{Path: n.path(), Error: &Error{
		Code: CodePortConflict, Node: n.path(), Permanent: true,
		Message: "two taken edges bring a value to one port",
		Hint:    hint,
	}}
}

func decideBreak(n *nodeState) Event {
	name := "before"
	if n.phase == phaseBreakAfter {
		name = "after"
	}
	id := n.path() + ":" + name + "#1"
	return &NodeWaiting{Path: n.path(), Interrupts: []Interrupt{{
		ID: id, Kind: AwaitBreak,
		Prompt: "paused " + name + " " + n.path(),
	}}}
}

// decideFailure applies the node's retry and onError settings.
func (r *Run) decideFailure(n *nodeState) Event {
	def, err := n.plan.Def, n.ext.failure
	if n.scope.cancelled() {
		return &NodeErrored{Path: n.path()}
	}
	if n.canRetry(err) {
		wait := max(backoff(def.Retry.Backoff, n.attempt).Milliseconds(), err.RetryAfter)
		return &NodeRetrying{Path: n.path(), Due: r.now + wait}
	}
	switch {
	case err.Code == CodeBudget || err.Code == CodeCancelled:
	case n.plan.errorWired:
		return &NodeErrored{Path: n.path(), Handled: "port", Outputs: Values{{errorPort, err.value()}}}
	case def.OnError.Handled && n.plan.firstOut == "": // no port can take the value
		return &NodeErrored{Path: n.path(), Handled: "value"}
	case def.OnError.Handled:
		return &NodeErrored{Path: n.path(), Handled: "value", Outputs: Values{{n.plan.firstOut, def.OnError.Value}}}
	}
	return &NodeErrored{Path: n.path()}
}

// policyRetries reports whether the policy allows a retry after this error.
func policyRetries(p *flow.Retry, err *Error) bool {
	if err.NoRetry || flow.NeverRetried(err.Code) {
		return false
	}
	if len(p.On) == 0 {
		return !err.Permanent
	}
	return slices.Contains(p.On, err.Code)
}

// WouldRetry reports whether the attempt of the node at path would be repeated if it failed
// with that error now.
func (r *Run) WouldRetry(path string, err *Error) bool {
	n := r.node(path)
	return n != nil && !n.scope.cancelled() && n.canRetry(err)
}

// canRetry reports whether the node's policy allows another attempt.
func (n *nodeState) canRetry(err *Error) bool {
	p, free := &n.plan.Def.Retry, int32(0)
	if n.ext != nil {
		free = n.ext.uncounted
	}
	return int(n.attempt-free) < p.Attempts && policyRetries(p, err)
}

// value returns the error as a node's error port delivers it.
func (e *Error) value() Value {
	return map[string]any{"code": e.Code, "message": e.Message, "node": e.Node, "attempt": int64(e.Attempt)}
}

// The first and the longest wait of a backoff.
const (
	firstBackoff = time.Second
	maxBackoff   = flow.MaxBackoff
)

// backoff returns the wait after an attempt: the first wait, doubled for each further
// attempt.
func backoff(first time.Duration, attempt int32) time.Duration {
	if first <= 0 {
		first = firstBackoff
	}
	for ; attempt > 1 && first < maxBackoff; attempt-- {
		first *= 2
	}
	return min(first, maxBackoff)
}

// decideScopeCancel ends a cancelled scope once nothing executes in it.
func (r *Run) decideScopeCancel() Event {
	for _, s := range r.cancelling {
		var e Event
		switch {
		case s.owner == nil:
			e = r.decideRunEnd(s)
		case !s.owner.scope.cancelled():
			e = r.decideIterationCancel(s)
		}
		if e != nil {
			return e
		}
	}
	return nil
}

// decideRunEnd ends a run whose outermost scope is cancelled; nil while anything executes.
func (r *Run) decideRunEnd(s *scope) Event {
	switch {
	case r.executing > 0 || r.children > 0:
		return nil
	case s.cancel.err == nil:
		return &RunCancelled{}
	}
	return &RunFailed{Error: s.cancel.err}
}

// decideIterationCancel ends a cancelled iteration: alone where iterations fail separately,
// otherwise with its composite; nil while anything executes in it.
func (r *Run) decideIterationCancel(s *scope) Event {
	cause, separate := s.cancel.err, s.owner.ext.expansion.separate
	if separate != nil && separate.failure == nil {
		if s.live > 0 {
			return nil
		}
		return &IterationCancelled{Path: s.name(), Error: cause}
	}
	if r.hasLiveWork(s.owner) {
		return nil
	}
	if separate != nil {
		cause = separate.failure
	}
	return &NodeFailed{Path: s.owner.path(), Error: cause}
}

func (r *Run) hasLiveWork(n *nodeState) bool {
	for _, s := range r.iterations(n) {
		if s.live > 0 {
			return true
		}
	}
	return false
}
