package engine

import (
	"slices"
	"strconv"
	"strings"
)

func (r *Run) applyFailed(e *NodeFailed) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which is not there", e.Kind(), e.Path)
	}
	r.applyContexts(e.Contexts)
	r.unlimit(n)
	m := n.more()
	m.failure, m.metadata, m.micros = e.Error, e.Metadata, e.Micros
	m.cutOff = false
	switch n.phase {
	case executing:
		r.yield(n, failing)
		if n.parental() { // decided once its children have ended
			return nil
		}
	case expanding:
		if open := r.iterations(n); len(open) > 0 {
			r.tearDown(open[0], e.Error)
		}
		if r.liveIn(n) { // asked for again once nothing executes below
			return nil
		}
		r.tearing = slices.DeleteFunc(r.tearing, func(s *scope) bool { return s.owner == n })
		n.phase = failing
	case asking, pulling: // its time is up
		r.closeAll(n)
		r.release(n)
		n.phase = failing
	case readied: // two edges on one port
		r.clashes = drop(r.clashes, n)
		n.phase = failing
	default:
		return invalid("%s: node %s is %s", e.Kind(), e.Path, n.phase)
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

// forgetErrors drops the failed effects that ended an attempt, so that the next
// one asks again from what failed and reuses what succeeded. A failure that the
// attempt got over stays: what came after it was asked because of it.
func (n *nodeState) forgetErrors() {
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
	// order: each entry is looked at alone.
	for key, e := range n.ext.effects {
		if e.Error != nil && !e.rejected() && (!known || follows(key, last)) {
			delete(n.ext.effects, key)
			delete(n.ext.begun, key)
		}
	}
	if n.ext.failure != nil && n.ext.failure.Code == CodeModelAnswer {
		n.passRejected(last, known)
	}
}

// passRejected has the next attempt ask anew for an answer whose rejection ended this
// one, its repair included. A rejected answer that a later one has replaced stays, so
// that the attempt comes to the same place again.
func (n *nodeState) passRejected(last string, known bool) {
	// order: each name is looked at alone.
	for key, e := range n.ext.effects {
		name, number := ordinalOf(key)
		if known && key != last || !e.rejected() || n.ext.effects[name+"#"+strconv.Itoa(number+1)] != nil {
			continue
		}
		for e.rejected() && !e.Passed {
			passed := *e
			passed.Passed = true
			n.ext.effects[key] = &passed
			number--
			key = name + "#" + strconv.Itoa(number)
			e = n.ext.effects[key]
		}
	}
}

// follows reports whether an effect is the one called last or has its name and a
// later ordinal, as parallel ones may that fail together.
func follows(key, last string) bool {
	name, number := ordinalOf(key)
	lastName, lastNumber := ordinalOf(last)
	return name == lastName && number >= lastNumber
}

func ordinalOf(key string) (name string, number int) {
	i := strings.LastIndexByte(key, '#')
	if i < 0 {
		return key, 0
	}
	number, _ = strconv.Atoi(key[i+1:])
	return key[:i], number
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
		n.phase, n.status, n.ext.unhandled = done, Failed, true
		r.tearDown(n.scope, n.ext.failure)
	}
	return nil
}

func (r *Run) applyCancelled(e *NodeCancelled) error {
	n := r.node(e.Path)
	if n == nil || n.phase == done || n.phase == idle {
		return invalid("%s: node %s is not active", e.Kind(), e.Path)
	}
	r.applyContexts(e.Contexts)
	if n.entered && n.phase != retrying {
		n.more().cutOff = true
	}
	if n.phase == executing {
		r.yield(n, done)
	}
	r.toCancel = drop(r.toCancel, n)
	r.breaks = drop(r.breaks, n)
	r.closeAll(n)
	r.release(n)
	r.unlimit(n)
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
		r.listActive(t)
	}
	r.tearing = append(r.tearing, s)
}

// unlist takes a scope from those whose outputs are to be collected.
func (r *Run) unlist(s *scope) {
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
		if s := r.scopes[n.path()+"#"+itoa(n.ext.base+i+1)]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// listActive lists what has to be cancelled by command: everything begun that
// no function is executing for.
func (r *Run) listActive(s *scope) {
	r.unlist(s)
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
		case held: // what it did stands; nobody is asked any more
			r.breaks = drop(r.breaks, n)
			r.closeAll(n)
			r.finish(n, Completed)
		case pulling, expanding, asking, breaking, retrying:
			if !n.parental() && !slices.Contains(r.toCancel, n) {
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
	if n == nil || !r.stuck(n) {
		return invalid("%s: node %s is not failed, cancelled or waiting", e.Kind(), e.Path)
	}
	r.closeAll(n)
	r.release(n)
	r.unlimit(n)
	delete(r.due, e.Path)
	if e.Raise != nil {
		r.add(e.Raise.Budget, e.Raise.More)
	}
	if r.ended == Failed {
		r.revive(n)
	}
	n.more().unhandled = false
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

// stuck reports whether a person may force the node: one that waits, or, once
// the run has failed, one that failed or was cancelled with it.
func (r *Run) stuck(n *nodeState) bool {
	switch n.phase {
	case asking, breaking, retrying:
		return r.ended == Pending && !n.scope.torn() && !n.parental()
	case done:
		return r.ended == Failed && n.unfinished()
	default:
		return false
	}
}

// unfinished reports whether the node ended and nothing followed from it: it
// was cancelled, or failed with nothing to take the failure.
func (n *nodeState) unfinished() bool {
	return n.status == Cancelled || n.status == Failed && n.ext != nil && n.ext.unhandled
}

// Stuck reports whether the node at the path may be forced.
func (r *Run) Stuck(path string) bool {
	n := r.node(path)
	return n != nil && r.stuck(n)
}

// revive lifts the teardown that a failure brought about, so that the run goes
// on; what was cancelled because of it, or failed beside it, is ready again.
func (r *Run) revive(target *nodeState) {
	r.ended, r.failure, r.tearing = Pending, nil, nil
	r.reopen(r.root, target)
}

// reopen readies what a teardown ended or passed over in the scope and below.
func (r *Run) reopen(s *scope, target *nodeState) {
	s.tear = nil
	for i := range s.nodes {
		n := &s.nodes[i]
		switch {
		case n == target:
		case n.phase == idle && n.pending == 0 && n.wanted:
			r.settle(n)
		case n.phase != done || !n.unfinished():
		case n.ext != nil && n.ext.expansion != nil:
			r.reopenAll(n, target)
		default:
			n.forgetErrors()
			n.entered, n.more().unhandled = false, false
			r.makeReady(n)
		}
	}
	r.checkFinished(s)
}

// reopenAll lets a composite go on with its iterations where they stopped.
func (r *Run) reopenAll(n, target *nodeState) {
	n.ext.unhandled, n.ext.failure = false, nil
	if n.ext.expansion.complete() {
		r.makeReady(n)
		return
	}
	n.phase, n.status = expanding, Running
	for _, s := range r.iterations(n) {
		r.reopen(s, target)
	}
	r.growing = append(r.growing, n)
}
