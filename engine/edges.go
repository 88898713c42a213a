package engine

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// settle decides what becomes of a node whose pushed edges are all resolved:
// it is put on the agenda as ready, to be skipped, or in conflict. A node
// nobody wants stays as it is.
func (r *Run) settle(n *nodeState) {
	if n.phase != idle || !n.wanted || n.scope.torn() {
		return
	}
	switch n.verdict() {
	case verdictRun:
		r.makeReady(n)
	case verdictSkip:
		n.phase = readied
		r.skips = append(r.skips, n)
	case verdictClash:
		n.phase = readied
		r.clashes = append(r.clashes, n)
	}
}

type verdict uint8

const (
	verdictRun verdict = iota
	verdictSkip
	verdictClash
)

// verdict applies the edge rules of the design, section 4.
func (n *nodeState) verdict() verdict {
	p := n.plan
	if p.pushed == 0 {
		return verdictRun
	}
	edges, plans := n.scope.edges, n.scope.plan.edges
	takenAll, takenControl, tested := int32(0), int32(0), int32(0)
	for i := p.inLo; i < p.inHi; i++ {
		e := &plans[i]
		if e.lazy {
			continue
		}
		if e.tested {
			tested++
		}
		if edges[i] != taken {
			continue
		}
		takenAll++
		if e.kind == flow.Control {
			takenControl++
		} else if !e.partial && n.secondOn(e.toPort, i) {
			return verdictClash
		}
	}
	switch {
	case takenAll == 0 && tested < p.pushed,
		p.control > 0 && takenControl == 0,
		p.joinAll && takenControl < p.control:
		return verdictSkip
	}
	for _, port := range p.required {
		if !n.has(port) {
			return verdictSkip
		}
	}
	return verdictRun
}

// secondOn reports whether a later edge than i brings a second value to a port
// that takes one.
func (n *nodeState) secondOn(port string, i int32) bool {
	if slices.Contains(n.plan.many, port) {
		return false
	}
	for j := i + 1; j < n.plan.inHi; j++ {
		e := &n.scope.plan.edges[j]
		if e.toPort == port && !e.partial && n.scope.edges[j] == taken && !n.sameContext(i, j) {
			return true
		}
	}
	return false
}

// sameContext reports whether two edges bring the handle of one context.
func (n *nodeState) sameContext(i, j int32) bool {
	a, b := &n.scope.plan.edges[i], &n.scope.plan.edges[j]
	if a.kind != flow.Context || b.kind != flow.Context {
		return false
	}
	x, _ := n.scope.nodes[a.from].outputs.Get(a.fromPort)
	y, _ := n.scope.nodes[b.from].outputs.Get(b.fromPort)
	h, ok := x.(Handle)
	k, ok2 := y.(Handle)
	return ok && ok2 && h == k
}

// has reports whether a port that is not lazy has a value.
func (n *nodeState) has(port string) bool {
	for i := range n.plan.bound {
		if b := &n.plan.bound[i]; b.name == port {
			return n.readable(b)
		}
	}
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if n.scope.edges[i] == taken && n.scope.plan.edges[i].toPort == port {
			return true
		}
	}
	return false
}

// readable reports whether everything is there that a template reads in any
// case.
func (n *nodeState) readable(b *boundPort) bool {
	for _, e := range b.reads {
		if n.scope.edges[e] != taken && !n.scope.plan.edges[e].maybe {
			return false
		}
	}
	return true
}

// resolve pushes the node's outcome along its edges: taken where the port has
// a value, dropped elsewhere.
func (r *Run) resolve(n *nodeState) {
	s := n.scope
	for _, i := range n.plan.out {
		e := &s.plan.edges[i]
		if s.edges[i] != unresolved {
			continue
		}
		s.edges[i] = dropped
		if n.gives(e.fromPort) {
			s.edges[i] = taken
		}
		to := &s.nodes[e.to]
		if e.lazy {
			r.wake(to)
			continue
		}
		if to.pending--; to.pending == 0 {
			r.settle(to)
		}
	}
}

// gives reports whether an edge from the port is taken.
func (n *nodeState) gives(port string) bool {
	switch n.status {
	case Completed:
		if port == "" {
			return true
		}
		_, ok := n.outputs.Get(port)
		return ok
	case Failed:
		return port == errorPort
	default:
		return false
	}
}

// wake readies a node whose pulled port is resolved.
func (r *Run) wake(n *nodeState) {
	if n.phase == pulling && n.pulled(n.ext.port) {
		r.makeReady(n)
	}
}

// pulled reports whether all sources of a lazy port are done.
func (n *nodeState) pulled(port string) bool {
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if n.scope.plan.edges[i].toPort == port && n.scope.edges[i] == unresolved {
			return false
		}
	}
	return true
}

// want makes a node run that only a pull asks for, and what it needs.
func (r *Run) want(n *nodeState) {
	if n.wanted {
		return
	}
	n.wanted = true
	n.scope.unask--
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if e := &n.scope.plan.edges[i]; !e.lazy {
			r.want(&n.scope.nodes[e.from])
		}
	}
	if n.pending == 0 {
		r.settle(n)
	}
}

// finish ends a node with its status and lets what follows from it happen.
func (r *Run) finish(n *nodeState, s Status) {
	n.status, n.phase = s, done
	if n.ext != nil && s == Completed {
		e := n.ext
		n.ext = nil
		if e.metadata != nil || e.cached {
			n.ext = &nodeExt{metadata: e.metadata, micros: e.micros, cached: e.cached}
		}
	}
	if !n.wanted {
		n.scope.unask--
		n.wanted = true
	}
	n.scope.open--
	if s != Cancelled {
		r.resolve(n)
	}
	r.checkFinished(n.scope)
}

// checkFinished lists a scope whose wanted nodes are all done.
func (r *Run) checkFinished(s *scope) {
	if s.open > s.unask || s.torn() || s.listed {
		return
	}
	if s.open > 0 {
		if len(r.unneeded) == 0 {
			r.listUnneeded(s)
		}
		return
	}
	s.listed = true
	r.finished = append(r.finished, s)
}

func (r *Run) listUnneeded(s *scope) {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.phase == idle && !n.wanted {
			r.unneeded = append(r.unneeded, n)
		}
	}
}
