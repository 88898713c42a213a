package engine

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// schedule decides the fate of a node after its pushed edges are resolved: it becomes
// ready, skipped or conflicting. A node that is not needed does not change.
func (r *Run) schedule(n *nodeState) {
	if n.phase != phaseIdle || !n.needed || n.scope.cancelled() {
		return
	}
	switch n.verdict() {
	case verdictRun:
		r.makeReady(n)
	case verdictSkip:
		n.phase = phaseReady
		r.skips = append(r.skips, n)
	case verdictConflict:
		n.phase = phaseReady
		r.conflicts = append(r.conflicts, n)
	}
}

type verdict uint8

const (
	verdictRun verdict = iota
	verdictSkip
	verdictConflict
)

// verdict applies the edge rules.
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
		if edges[i] != edgeTaken {
			continue
		}
		takenAll++
		if e.kind == flow.EdgeControl {
			takenControl++
		} else if !e.partial && n.hasSecondValue(e.toPort, i) {
			return verdictConflict
		}
	}
	switch {
	case takenAll == 0 && tested < p.pushed,
		p.control > 0 && takenControl == 0,
		p.joinAll && takenControl < p.control:
		return verdictSkip
	}
	for _, port := range p.required {
		if !n.hasValue(port) {
			return verdictSkip
		}
	}
	return verdictRun
}

// hasSecondValue reports whether a later edge than i passes a second value to a port
// that takes one.
func (n *nodeState) hasSecondValue(port string, i int32) bool {
	if slices.Contains(n.plan.many, port) {
		return false
	}
	for j := i + 1; j < n.plan.inHi; j++ {
		e := &n.scope.plan.edges[j]
		if e.toPort == port && !e.partial && n.scope.edges[j] == edgeTaken && !n.sameContext(i, j) {
			return true
		}
	}
	return false
}

// sameContext reports whether two edges bring the handle of one context.
func (n *nodeState) sameContext(i, j int32) bool {
	a, b := &n.scope.plan.edges[i], &n.scope.plan.edges[j]
	if a.kind != flow.EdgeContext || b.kind != flow.EdgeContext {
		return false
	}
	x, _ := n.scope.nodes[a.from].outputs.Get(a.fromPort)
	y, _ := n.scope.nodes[b.from].outputs.Get(b.fromPort)
	h, ok := x.(Handle)
	k, ok2 := y.(Handle)
	return ok && ok2 && h == k
}

// hasValue reports whether a port that is not lazy has a value.
func (n *nodeState) hasValue(port string) bool {
	for i := range n.plan.bound {
		if b := &n.plan.bound[i]; b.name == port {
			return n.templateReadable(b)
		}
	}
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if n.scope.edges[i] == edgeTaken && n.scope.plan.edges[i].toPort == port {
			return true
		}
	}
	return false
}

// templateReadable reports whether all values are available that a template reads
// unconditionally.
func (n *nodeState) templateReadable(b *boundPort) bool {
	for _, e := range b.reads {
		if n.scope.edges[e] != edgeTaken && !n.scope.plan.edges[e].maybe {
			return false
		}
	}
	return true
}

// resolveOutEdges pushes the node's outcome along its edges: an edge is taken if its port
// has a value, and skipped otherwise.
func (r *Run) resolveOutEdges(n *nodeState) {
	s := n.scope
	for _, i := range n.plan.out {
		e := &s.plan.edges[i]
		if s.edges[i] != edgeUnresolved {
			continue
		}
		s.edges[i] = edgeDropped
		if n.emits(e.fromPort) {
			s.edges[i] = edgeTaken
		}
		to := &s.nodes[e.to]
		if e.lazy {
			r.readyPulled(to)
			continue
		}
		if to.pending--; to.pending == 0 {
			r.schedule(to)
		}
	}
}

// emits reports whether an edge from the port is taken.
func (n *nodeState) emits(port string) bool {
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

// readyPulled readies a node after its pulled port is resolved.
func (r *Run) readyPulled(n *nodeState) {
	if n.phase == phasePulling && n.pullResolved(n.ext.port) {
		r.makeReady(n)
	}
}

// pullResolved reports whether all sources of a lazy port are done.
func (n *nodeState) pullResolved(port string) bool {
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if n.scope.plan.edges[i].toPort == port && n.scope.edges[i] == edgeUnresolved {
			return false
		}
	}
	return true
}

// markNeeded marks a pulled node, and the nodes that it depends on, as needed.
func (r *Run) markNeeded(n *nodeState) {
	if n.needed {
		return
	}
	n.needed = true
	n.scope.unneeded--
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if e := &n.scope.plan.edges[i]; !e.lazy {
			r.markNeeded(&n.scope.nodes[e.from])
		}
	}
	if n.pending == 0 {
		r.schedule(n)
	}
}

// endNode ends a node with its status and resolves its outgoing edges.
func (r *Run) endNode(n *nodeState, s Status) {
	n.status, n.phase = s, phaseDone
	if n.ext != nil && s == Completed {
		e := n.ext
		n.ext = nil
		if e.metadata != nil || e.cached {
			n.ext = &nodeExt{metadata: e.metadata, micros: e.micros, cached: e.cached}
		}
	}
	if !n.needed {
		n.scope.unneeded--
		n.needed = true
	}
	n.scope.open--
	if s != Cancelled {
		r.resolveOutEdges(n)
	}
	r.checkFinished(n.scope)
}

// checkFinished lists a scope if all of its needed nodes have ended.
func (r *Run) checkFinished(s *scope) {
	if s.open > s.unneeded || s.cancelled() || s.listed {
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
		if n := &s.nodes[i]; n.phase == phaseIdle && !n.needed {
			r.unneeded = append(r.unneeded, n)
		}
	}
}
