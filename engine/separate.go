package engine

import "slices"

// separate is the state of an expansion whose iterations end one by one: the branches of a
// race, or items of which each may fail without the others. Each iteration has a lane, which
// is discarded when the iteration fails or loses.
type separate struct {
	race bool
	// winner is the number of the branch that completed first, from 1; 0 while none has.
	winner int
	// errors are the failures of the iterations, by item.
	errors []*Error
	// failure is why the whole composite failed while iterations were open: it timed out, or an
	// item exceeded a budget.
	failure *Error
}

// decided reports whether the open iterations are only waited for.
func (x *separate) decided() bool { return x.winner > 0 || x.failure != nil }

// separateOf returns the state of the expansion that the event starts, nil if one failing
// iteration fails the composite.
func separateOf(e *NodeExpanded) *separate {
	if !e.Race && !e.Tolerant {
		return nil
	}
	return &separate{race: e.Race, errors: make([]*Error, len(e.Items))}
}

// failSeparate cancels all iterations because the composite as a whole failed. The first
// cause stays; the event that ends the composite repeats it.
func (r *Run) failSeparate(n *nodeState, err *Error) {
	if n.ext.expansion.separate.failure != nil {
		return
	}
	n.ext.expansion.separate.failure = err
	for _, s := range r.iterations(n) {
		r.cancelAlone(s, err)
	}
}

// failIteration cancels an iteration of a separate expansion because of an error in it. An
// exhausted budget is never handled, so outside a race it fails the composite.
func (r *Run) failIteration(s *scope, err *Error) {
	if x := s.owner.ext.expansion.separate; !x.race && err != nil && err.Code == CodeBudget && x.failure == nil {
		r.failSeparate(s.owner, err)
		return
	}
	r.cancelAlone(s, err)
}

// cancelAlone cancels an iteration, and not its siblings, unless it is being cancelled.
func (r *Run) cancelAlone(s *scope, err *Error) {
	if s.cancel != nil {
		return
	}
	s.cancel = &scopeCancel{err: err}
	r.listToCancel(s)
	r.cancelling = append(r.cancelling, s)
}

// applyIterationCancelled closes an iteration that was cancelled or failed. An iteration in
// which all nodes have ended fails if its outputs cannot be evaluated.
func (r *Run) applyIterationCancelled(e *IterationCancelled) error {
	s := r.scopes[e.Path]
	if s == nil || !s.isSeparate() {
		return invalid("%s: %s is not an open iteration that ends alone", e.Kind(), e.Path)
	}
	if (s.cancel == nil || s.live > 0) && (!s.listed || e.Error == nil) {
		return invalid("%s: %s has neither failed nor been cancelled, or nodes of it are executing", e.Kind(), e.Path)
	}
	n := s.owner
	x := n.ext.expansion
	i := s.number - n.ext.earlierIterations - 1
	x.separate.errors[i], x.lanes[i] = e.Error, &laneResult{}
	x.running--
	x.done++
	r.dropScope(s)
	if x.complete() {
		r.makeReady(n)
	} else {
		r.expandable = append(r.expandable, n)
	}
	return nil
}

// isSeparate reports whether the scope is an iteration that ends without its siblings.
func (s *scope) isSeparate() bool {
	return s.owner != nil && s.owner.ext.expansion != nil && s.owner.ext.expansion.separate != nil
}

// EndsAlone reports whether a failure in the scope leaves the sibling iterations as they are:
// it is a branch of a race, or an item of a composite that tolerates failures.
func (s Scope) EndsAlone() bool { return s.s.isSeparate() }

// reopenSeparate prepares the iterations of a separate expansion for a failed run that
// continues. Iterations that lost or failed stay cancelled and are listed again; if the
// composite as a whole had failed, the iterations that were open then continue.
func (r *Run) reopenSeparate(n *nodeState) {
	x := n.ext.expansion.separate
	if x == nil {
		return
	}
	for _, s := range r.iterations(n) {
		if s.cancel != nil && x.failure != nil && s.cancel.err == x.failure {
			s.cancel = nil
		}
		if s.cancel != nil {
			r.cancelling = append(r.cancelling, s)
		}
	}
	x.failure = nil
}

// itemErrors returns the failures of the items of a composite that tolerates them, by item; nil
// for any other.
func (n *nodeState) itemErrors() []*Error {
	if x := n.ext.expansion; x.separate != nil && !x.separate.race {
		return slices.Clone(x.separate.errors)
	}
	return nil
}
