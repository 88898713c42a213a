package engine

import "slices"

func (r *Run) applyFailed(e *NodeFailed) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which is not there", e.Kind(), e.Path)
	}
	r.applyContexts(e.Contexts)
	m := n.more()
	m.failure, m.metadata, m.micros = e.Error, e.Metadata, e.Micros
	switch n.phase {
	case executing:
		r.yield(n, failing)
	case expanding:
		if r.liveIn(n) { // asked for again once nothing executes below
			r.tearDown(r.iterations(n)[0], e.Error)
			return nil
		}
		n.phase = failing
	case readied: // two edges on one port
		r.clashes = drop(r.clashes, n)
		n.phase = failing
	default:
		return invalid("%s: node %s is in phase %d", e.Kind(), e.Path, n.phase)
	}
	r.failures = append(r.failures, n)
	return nil
}

func (r *Run) applyRetrying(e *NodeRetrying) error {
	n, err := r.active(e.Path, failing, e)
	if err != nil {
		return err
	}
	r.failures = drop(r.failures, n)
	r.closeAll(n)
	r.dropIterations(n)
	n.forgetErrors()
	n.phase, n.status = retrying, Waiting
	r.arm(e.Path, e.Due)
	return nil
}

// forgetErrors drops the failed effects, and answers, of an attempt, so that the
// next one asks again from what failed and reuses what succeeded.
func (n *nodeState) forgetErrors() {
	if n.ext == nil {
		return
	}
	// order: each entry is looked at alone.
	for key, e := range n.ext.effects {
		if e.Error != nil {
			delete(n.ext.effects, key)
			delete(n.ext.begun, key)
		}
	}
}

func (r *Run) applyErrored(e *NodeErrored) error {
	n, err := r.active(e.Path, failing, e)
	if err != nil {
		return err
	}
	r.failures = drop(r.failures, n)
	r.closeAll(n)
	n.outputs = e.Outputs
	switch e.Handled {
	case "port":
		r.dropIterations(n)
		r.finish(n, Failed)
	case "value":
		r.dropIterations(n)
		r.finish(n, Completed)
	default:
		n.phase, n.status = done, Failed
		r.tearDown(n.scope, n.ext.failure)
	}
	return nil
}

func (r *Run) applyCancelled(e *NodeCancelled) error {
	n := r.node(e.Path)
	if n == nil || n.phase == done || n.phase == idle {
		return invalid("%s: node %s is not active", e.Kind(), e.Path)
	}
	if n.phase == executing {
		r.yield(n, done)
	}
	r.toCancel = drop(r.toCancel, n)
	r.breaks = drop(r.breaks, n)
	r.closeAll(n)
	delete(r.due, e.Path)
	n.phase, n.status = done, Cancelled
	return nil
}

// closeAll closes the node's open interrupts.
func (r *Run) closeAll(n *nodeState) {
	if n.ext == nil || n.ext.waiting == 0 {
		return
	}
	for _, o := range slices.Clone(r.interrupts) {
		if o.node == n {
			r.close(o)
		}
	}
}

// tearDown stops everything in a scope: nothing new starts, what waits is
// cancelled, and when what executes has ended, the composite around it (or the
// run) ends too. For an iteration its siblings are torn down as well.
func (r *Run) tearDown(s *scope, err *Error) {
	if s.torn() && (s.owner != nil || s.tear.err == nil || err != nil) {
		return
	}
	scopes := []*scope{s}
	if s.owner != nil {
		scopes = r.iterations(s.owner)
	}
	for _, t := range scopes {
		t.tear = &teardown{err: err}
		r.finished = slices.DeleteFunc(r.finished, func(f *scope) bool { return f == t })
		t.listed = false
		r.listActive(t)
	}
	r.tearing = append(r.tearing, s)
}

// iterations lists a composite's open scopes in order.
func (r *Run) iterations(n *nodeState) []*scope {
	var out []*scope
	if n.ext == nil || n.ext.expansion == nil {
		return nil
	}
	for i := range n.ext.expansion.items {
		if s := r.scopes[n.path()+"#"+itoa(n.ext.base+i+1)]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// listActive lists what has to be cancelled by command: everything begun that
// no function is executing for.
func (r *Run) listActive(s *scope) {
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, inner := range r.iterations(n) {
			r.listActive(inner)
		}
		switch n.phase {
		case readied:
			if n.entered {
				r.toCancel = append(r.toCancel, n)
				continue
			}
			r.skips, r.clashes, r.breaks = drop(r.skips, n), drop(r.clashes, n), drop(r.breaks, n)
			n.phase = idle
		case pulling, expanding, asking, breaking, held, retrying:
			if !slices.Contains(r.toCancel, n) {
				r.toCancel = append(r.toCancel, n)
			}
		case idle, executing, failing, done:
		}
	}
}

// Tearing reports whether anything is being torn down.
func (r *Run) Tearing() bool { return len(r.tearing) > 0 }

// Aborted reports whether the node's attempt should stop: its scope, or one
// around it, is being torn down.
func (r *Run) Aborted(path string) bool {
	n := r.node(path)
	return n == nil || n.scope.torn()
}

func (r *Run) applyForced(e *NodeForced) error {
	n := r.node(e.Path)
	if n == nil || !n.stuck() {
		return invalid("%s: node %s is not failed, cancelled or waiting", e.Kind(), e.Path)
	}
	r.closeAll(n)
	delete(r.due, e.Path)
	r.revive(n)
	switch e.Op {
	case "retry":
		r.dropIterations(n)
		n.forgetErrors()
		n.entered, n.passed = false, true
		r.makeReady(n)
	case "skip":
		r.dropIterations(n)
		r.finish(n, Skipped)
	case "complete":
		r.dropIterations(n)
		n.outputs = e.Outputs
		r.finish(n, Completed)
	default:
		return invalid("%s: unknown operation %q", e.Kind(), e.Op)
	}
	return nil
}

// stuck reports whether a person may force the node.
func (n *nodeState) stuck() bool {
	switch n.phase {
	case asking, breaking, retrying:
		return true
	case done:
		return n.status == Failed && n.ext != nil && n.ext.failure != nil && n.scope.torn() || n.status == Cancelled
	}
	return false
}

// Stuck reports whether the node at the path may be forced.
func (r *Run) Stuck(path string) bool {
	n := r.node(path)
	return n != nil && n.stuck() && r.ended != Completed && r.ended != Cancelled
}

// revive lifts the teardown that a failure brought about, so that the run goes
// on; what was cancelled because of it is ready again.
func (r *Run) revive(target *nodeState) {
	r.ended, r.failure = Pending, nil
	r.tearing = nil
	for s := target.scope; s != nil; s = s.parent() {
		s.tear = nil
		if s.owner != nil && s.owner.phase == done {
			s.owner.phase, s.owner.status = expanding, Running
			for _, sib := range r.iterations(s.owner) {
				sib.tear = nil
				r.restart(sib, target)
			}
			r.growing = append(r.growing, s.owner)
		}
	}
	r.restart(r.root, target)
}

// restart readies what a teardown cancelled or passed over in the scope.
func (r *Run) restart(s *scope, except *nodeState) {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n == except {
			continue
		}
		switch {
		case n.phase == done && n.status == Cancelled:
			n.forgetErrors()
			n.entered = false
			r.makeReady(n)
		case n.phase == idle && n.pending == 0 && n.wanted:
			r.settle(n)
		}
	}
	r.checkFinished(s)
}
