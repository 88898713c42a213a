package engine

import (
	"slices"
	"strconv"
	"strings"
)

func (r *Run) applyFailed(e *NodeFailed) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which does not exist", e.Kind(), e.Path)
	}
	r.applyContexts(e.Contexts)
	r.stopWaitTimer(n)
	m := n.ensureExt()
	m.failure, m.metadata, m.micros = e.Error, e.Metadata, e.Micros
	m.cutOff = false
	switch n.phase {
	case phaseExecuting:
		r.endEntry(n, phaseFailing)
		if n.hasOpenChild() { // decided after its children have ended
			return nil
		}
	case phaseExpanding:
		if n.ext.expansion.separate != nil {
			r.failSeparate(n, e.Error)
		} else if open := r.iterations(n); len(open) > 0 {
			r.cancelScope(open[0], e.Error)
		}
		if r.hasLiveWork(n) { // checked again when nothing executes below it
			return nil
		}
		r.cancelling = slices.DeleteFunc(r.cancelling, func(s *scope) bool { return s.owner == n })
		n.phase = phaseFailing
	case phaseWaiting, phasePulling: // timed out
		r.closeInterrupts(n)
		r.releaseGrants(n)
		n.phase = phaseFailing
	case phaseReady: // two values for one port
		r.conflicts = removeNode(r.conflicts, n)
		n.phase = phaseFailing
	default:
		return invalid("%s: node %s is %s", e.Kind(), e.Path, n.phase)
	}
	r.failures = append(r.failures, n)
	return nil
}

func (r *Run) applyRetrying(e *NodeRetrying) error {
	n, err := r.nodeInPhase(e.Path, phaseFailing, e)
	if err != nil {
		return err
	}
	r.failures = removeNode(r.failures, n)
	r.closeInterrupts(n)
	r.dropIterations(n)
	n.dropFailedEffects()
	n.phase, n.status = phaseRetrying, Waiting
	r.setTimer(e.Path, e.Due)
	return nil
}

// dropFailedEffects drops the failed effects that ended an attempt, so that the next
// attempt repeats the failed request and reuses what succeeded. A failure that the attempt
// handled stays, because later requests depend on it.
func (n *nodeState) dropFailedEffects() {
	if n.ext == nil {
		return
	}
	last, known := "", false
	if n.ext.failure != nil {
		last = n.ext.failure.Key
		_, known = n.ext.effects[last]
	} else if n.status == Cancelled {
		return
	}
	// order: each entry is considered alone.
	for key, e := range n.ext.effects {
		if e.Error != nil && !e.rejected() && (!known || sameOrLaterEffect(key, last)) {
			delete(n.ext.effects, key)
			delete(n.ext.startedEffects, key)
			n.takesNoMore(key)
		}
	}
	if n.ext.failure != nil && n.ext.failure.Code == CodeModelAnswer {
		n.supersedeRejected(last, known)
	}
}

// supersedeRejected makes the next attempt ask again for an answer whose rejection ended
// this attempt, including its repair. A rejected answer that a later one replaced stays, so
// that the next attempt reaches the same point.
func (n *nodeState) supersedeRejected(last string, known bool) {
	// order: each name is considered alone.
	for key, e := range n.ext.effects {
		name, number := ordinalOf(key)
		next, _ := n.ext.lastTry(name, number+1)
		if known && key != last || !e.rejected() || n.ext.effects[next] != nil {
			continue
		}
		for ; number > 0; number-- {
			newest, tries := n.ext.lastTry(name, number)
			if e := n.ext.effects[newest]; !e.rejected() || e.Superseded {
				break
			}
			for _, key := range tries {
				if e := n.ext.effects[key]; e != nil {
					passed := *e
					passed.Superseded = true
					n.ext.effects[key] = &passed
				}
			}
		}
	}
}

// sameOrLaterEffect reports whether an effect is the one requested last, or has the same
// name and a later ordinal, as parallel effects that fail together do.
func sameOrLaterEffect(key, last string) bool {
	name, number := ordinalOf(key)
	lastName, lastNumber := ordinalOf(last)
	return name == lastName && number >= lastNumber
}

func ordinalOf(key string) (name string, number int) {
	i := strings.LastIndexByte(key, '#')
	if i < 0 {
		return key, 0
	}
	digits, _, _ := strings.Cut(key[i+1:], ".") // "3.2" is the second try under the ordinal 3
	number, _ = strconv.Atoi(digits)
	return key[:i], number
}

// lastTry returns the key of the last try that was recorded under an ordinal, and all keys
// under the ordinal.
func (x *nodeExt) lastTry(name string, ordinal int) (last string, all []string) {
	last = name + "#" + strconv.Itoa(ordinal)
	all = append(all, last)
	for try := 2; ; try++ {
		key := all[0] + "." + strconv.Itoa(try)
		if x.effects[key] == nil {
			return last, all
		}
		last, all = key, append(all, key)
	}
}

func (r *Run) applyErrored(e *NodeErrored) error {
	n, err := r.nodeInPhase(e.Path, phaseFailing, e)
	if err != nil {
		return err
	}
	r.failures = removeNode(r.failures, n)
	r.closeInterrupts(n)
	n.outputs = e.Outputs
	switch e.Handled {
	case "port":
		r.dropIterations(n)
		r.endNode(n, Failed)
	case "value":
		r.dropIterations(n)
		r.endNode(n, Completed)
	default:
		n.phase, n.status, n.ext.unhandled = phaseDone, Failed, true
		r.cancelScope(n.scope, n.ext.failure)
	}
	return nil
}

func (r *Run) applyCancelled(e *NodeCancelled) error {
	n := r.node(e.Path)
	if n == nil || n.phase == phaseDone || n.phase == phaseIdle {
		return invalid("%s: node %s is not active", e.Kind(), e.Path)
	}
	r.applyContexts(e.Contexts)
	if n.entered && n.phase != phaseRetrying {
		n.ensureExt().cutOff = true
	}
	if n.phase == phaseExecuting {
		r.endEntry(n, phaseDone)
	}
	r.toCancel = removeNode(r.toCancel, n)
	r.breaks = removeNode(r.breaks, n)
	r.closeInterrupts(n)
	r.releaseGrants(n)
	r.stopWaitTimer(n)
	delete(r.due, e.Path)
	n.phase, n.status = phaseDone, Cancelled
	return nil
}

// closeInterrupts closes the node's open interrupts.
func (r *Run) closeInterrupts(n *nodeState) {
	if n.ext == nil || n.ext.waiting == 0 {
		return
	}
	for _, o := range slices.Clone(r.interrupts) {
		if o.node == n {
			r.removeInterrupt(o)
		}
	}
}

// cancelScope cancels a scope: no node starts, waiting nodes are cancelled, and when the
// executing nodes have ended, the composite around the scope (or the run) ends too. For an
// iteration it cancels the sibling iterations as well, unless each of them ends alone.
func (r *Run) cancelScope(s *scope, err *Error) {
	if s.cancelled() && (s.owner != nil || s.cancel.err == nil || err != nil) {
		return
	}
	if s.isSeparate() {
		r.failIteration(s, err)
		return
	}
	scopes := []*scope{s}
	if s.owner != nil {
		scopes = r.iterations(s.owner)
	}
	for _, t := range scopes {
		t.cancel = &scopeCancel{err: err}
		r.listToCancel(t)
	}
	r.cancelling = append(r.cancelling, s)
}

// unlistFinished removes a scope from the list of scopes whose outputs are to be collected.
func (r *Run) unlistFinished(s *scope) {
	if s.listed {
		s.listed = false
		r.finished = slices.DeleteFunc(r.finished, func(f *scope) bool { return f == s })
	}
}

// iterations lists a composite's open scopes in order.
func (r *Run) iterations(n *nodeState) []*scope {
	var out []*scope
	if n.ext == nil || n.ext.expansion == nil {
		return nil
	}
	for i := range n.ext.expansion.items {
		if s := r.scopes[n.path()+"#"+itoa(n.ext.earlierIterations+i+1)]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// listToCancel lists the started nodes that must be cancelled by a command because no
// function is executing for them.
func (r *Run) listToCancel(s *scope) {
	r.unlistFinished(s)
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, inner := range r.iterations(n) {
			r.listToCancel(inner)
		}
		switch n.phase {
		case phaseReady:
			if n.entered {
				r.toCancel = append(r.toCancel, n)
				continue
			}
			r.skips, r.conflicts, r.breaks = removeNode(r.skips, n), removeNode(r.conflicts, n), removeNode(r.breaks, n)
			n.phase = phaseIdle
		case phaseBreakAfter: // its outputs stay; the breakpoint is dropped
			r.breaks = removeNode(r.breaks, n)
			r.closeInterrupts(n)
			r.endNode(n, Completed)
		case phasePulling, phaseExpanding, phaseWaiting, phaseBreakBefore, phaseRetrying:
			if !n.hasOpenChild() && !slices.Contains(r.toCancel, n) {
				r.toCancel = append(r.toCancel, n)
			}
		case phaseIdle, phaseExecuting, phaseFailing, phaseDone:
		}
	}
}

// Cancelling reports whether any scope is being cancelled.
func (r *Run) Cancelling() bool { return len(r.cancelling) > 0 }

// Aborted reports whether the node's attempt must stop because its scope, or one around it,
// is being cancelled.
func (r *Run) Aborted(path string) bool {
	n := r.node(path)
	return n == nil || n.scope.cancelled()
}

func (r *Run) applyOverridden(e *NodeOverridden) error {
	n := r.node(e.Path)
	if n == nil || !r.canOverride(n) {
		return invalid("%s: node %s is not failed, cancelled or waiting", e.Kind(), e.Path)
	}
	r.closeInterrupts(n)
	r.releaseGrants(n)
	r.stopWaitTimer(n)
	delete(r.due, e.Path)
	if e.Increase != nil {
		r.increaseBudget(e.Increase.Budget, e.Increase.More)
	}
	if r.ended == Failed {
		r.reopenAfterFailure(n)
	}
	n.ensureExt().unhandled = false
	switch e.Op {
	case "retry":
		r.dropIterations(n)
		n.dropFailedEffects()
		n.entered, n.breakPassed = false, true
		r.makeReady(n)
	case "skip":
		r.dropIterations(n)
		r.endNode(n, Skipped)
	case "complete":
		r.dropIterations(n)
		n.outputs = e.Outputs
		r.endNode(n, Completed)
	default:
		return invalid("%s: unknown operation %q", e.Kind(), e.Op)
	}
	return nil
}

// canOverride reports whether a person may override the node: a waiting node or, after the
// run failed, a node that failed or was cancelled with it.
func (r *Run) canOverride(n *nodeState) bool {
	switch n.phase {
	case phaseWaiting, phaseBreakBefore, phaseRetrying:
		return r.ended == Pending && !n.scope.cancelled() && !n.hasOpenChild()
	case phaseDone:
		return r.ended == Failed && n.unfinished()
	default:
		return false
	}
}

// unfinished reports whether the node ended without consequences: it was cancelled, or it
// failed and nothing handled the failure.
func (n *nodeState) unfinished() bool {
	return n.status == Cancelled || n.status == Failed && n.ext != nil && n.ext.unhandled
}

// CanOverride reports whether a person may override the node at the path.
func (r *Run) CanOverride(path string) bool {
	n := r.node(path)
	return n != nil && r.canOverride(n)
}

// reopenAfterFailure reverts the cancellation that a failure caused, so that the run
// continues. Nodes that were cancelled or failed because of it are ready again.
func (r *Run) reopenAfterFailure(target *nodeState) {
	r.ended, r.failure, r.cancelling = Pending, nil, nil
	r.startRunTimer()
	r.reopen(r.root, target)
}

// reopen readies the nodes of the scope, and of scopes below it, that a cancellation ended
// or prevented from starting.
func (r *Run) reopen(s *scope, target *nodeState) {
	s.cancel = nil
	for i := range s.nodes {
		n := &s.nodes[i]
		switch {
		case n == target:
		case n.phase == phaseIdle && n.pending == 0 && n.needed:
			r.schedule(n)
		case n.phase != phaseDone || !n.unfinished():
		case n.ext != nil && n.ext.expansion != nil:
			r.reopenIterations(n, target)
		default:
			n.dropFailedEffects()
			n.entered, n.ensureExt().unhandled = false, false
			r.makeReady(n)
		}
	}
	r.checkFinished(s)
}

// reopenIterations makes a composite continue its iterations from where they stopped.
func (r *Run) reopenIterations(n, target *nodeState) {
	n.ext.unhandled, n.ext.failure = false, nil
	if n.ext.expansion.complete() {
		r.makeReady(n)
		return
	}
	n.phase, n.status = phaseExpanding, Running
	r.reopenSeparate(n)
	for _, s := range r.iterations(n) {
		if !s.isSeparate() || s.cancel == nil {
			r.reopen(s, target)
		}
	}
	r.expandable = append(r.expandable, n)
}
