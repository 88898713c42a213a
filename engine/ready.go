package engine

import (
	"container/heap"
	"slices"

	"github.com/weir-run/weir/flow"
)

// nodeHeap is the ready nodes in flow order. It may hold nodes that are no
// longer ready; they are dropped when they come up.
type nodeHeap []*nodeState

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return lessInFlowOrder(h[i], h[j]) }
func (h nodeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *nodeHeap) Push(x any) { *h = append(*h, x.(*nodeState)) }

// Pop removes the last element.
func (h *nodeHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}

// contextState is what the engine knows of a context.
type contextState struct {
	id      string
	length  int // messages
	parent  string
	at      int
	writer  *nodeState
	waiters nodeHeap
	grant   []string // {id}, shared by all grants of this context alone
}

// ContextLength is how many messages the context holds, -1 where there is none.
func (r *Run) ContextLength(id string) int {
	if c := r.contexts[id]; c != nil {
		return c.length
	}
	return -1
}

// makeReady puts a node on the agenda, first behind its interruptBefore.
func (r *Run) makeReady(n *nodeState) {
	if n.entered && r.listIfCancelled(n) {
		return
	}
	n.phase, n.status = phaseReady, Pending
	if n.entered {
		n.status = Running
	}
	if !n.breakPassed && !n.entered && r.breaksBefore(n) {
		r.breaks = append(r.breaks, n)
		return
	}
	heap.Push(&r.ready, n)
}

func (r *Run) breaksBefore(n *nodeState) bool {
	return n.plan.Def.InterruptBefore || len(r.Start.Breaks) > 0 && slices.Contains(r.Start.Breaks, n.plan.Def.ID)
}

// nextStart returns the first ready node, in flow order, that a free slot and
// its contexts allow, with the contexts it is granted. Nodes whose contexts
// are taken are moved to wait for them.
func (r *Run) nextStart() (*nodeState, []string) {
	for r.executing < r.parallel && len(r.ready) > 0 {
		n := heap.Pop(&r.ready).(*nodeState)
		if !n.startable() {
			r.releaseWaits(n)
			continue
		}
		grants := r.grantsFor(n)
		if c := r.busyContext(n, grants); c != nil {
			heap.Push(&c.waiters, n)
			n.ensureExt().waitsFor = grants
			r.offerContexts(grants) // what it waited for before may be free
			continue
		}
		heap.Push(&r.ready, n) // stays until its start is applied
		return n, grants
	}
	return nil, nil
}

// startable reports whether the node is ready and may start.
func (n *nodeState) startable() bool { return n.phase == phaseReady && !n.scope.cancelled() }

// releaseWaits lets others have the contexts that a node gave up waiting for.
func (r *Run) releaseWaits(n *nodeState) {
	if n.ext != nil {
		r.offerContexts(n.ext.waitsFor)
	}
}

// offerContexts lets the next in line try for each of the contexts that is free.
func (r *Run) offerContexts(ids []string) {
	for _, id := range ids {
		if c := r.contexts[id]; c != nil && c.writer == nil {
			r.readyNextWaiter(c)
		}
	}
}

// readyNextWaiter readies the first of those that still wait for the context.
func (r *Run) readyNextWaiter(c *contextState) {
	for len(c.waiters) > 0 {
		if n := heap.Pop(&c.waiters).(*nodeState); n.startable() {
			heap.Push(&r.ready, n)
			return
		}
	}
}

// busyContext returns a context of the list that somebody else is writing.
func (r *Run) busyContext(n *nodeState, ids []string) *contextState {
	for _, id := range ids {
		if c := r.contexts[id]; c != nil && c.writer != nil && c.writer != n {
			return c
		}
	}
	return nil
}

// grantsFor lists the contexts the node may write; sorted, mostly one.
func (r *Run) grantsFor(n *nodeState) []string {
	if n.plan.Use != flow.ContextWrite {
		return n.mergeGrants()
	}
	return r.contextsOf(n)
}

// contextsOf lists the contexts the node uses: those whose handles came in,
// else that of the scope.
func (r *Run) contextsOf(n *nodeState) []string {
	var ids []string
	for _, port := range n.plan.contextPort {
		if h, ok := n.handleOn(port); ok {
			ids = append(ids, r.localID(n.scope, h.ID))
		}
	}
	if len(ids) == 0 {
		ids = append(ids, r.localID(n.scope, n.scope.context()))
	}
	if len(ids) == 1 {
		if c := r.contexts[ids[0]]; c != nil {
			return c.grant
		}
		return ids
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// context is the id of the scope's own context: what was wired to the
// composite around it, else main.
func (s *scope) context() string {
	for ; s.owner != nil; s = s.owner.scope {
		for _, port := range s.owner.plan.contextPort {
			if h, ok := s.owner.handleOn(port); ok {
				return h.ID
			}
		}
	}
	return MainContext
}

// mergeGrants lists the contexts that a composite's lanes go back into.
func (n *nodeState) mergeGrants() []string {
	if n.ext == nil || n.ext.expansion == nil || !n.ext.expansion.fork || !n.ext.expansion.complete() {
		return nil
	}
	var ids []string
	for _, l := range n.ext.expansion.allLanes() {
		for _, c := range l.commits {
			ids = append(ids, outerContext(c))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// MainContext is the id of a run's main context.
const MainContext = "main"

// handleOn returns the handle that came in on a context port.
func (n *nodeState) handleOn(port string) (Handle, bool) {
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		e := &n.scope.plan.edges[i]
		if e.toPort != port || n.scope.edges[i] != edgeTaken {
			continue
		}
		v, _ := n.scope.nodes[e.from].outputs.Get(e.fromPort)
		if h, ok := v.(Handle); ok {
			return h, true
		}
	}
	for _, p := range n.plan.contextInputs {
		if p.port != port {
			continue
		}
		v, _ := n.scope.inputs.Get(p.input)
		if h, ok := v.(Handle); ok {
			return h, true
		}
	}
	return Handle{}, false
}

// localID is the context that id means for a node: inside a lane, the lane's
// own fork of it.
func (r *Run) localID(s *scope, id string) string {
	l, s := s.laneOf()
	if l == nil {
		return id
	}
	id = r.localID(s.owner.scope, id)
	for _, b := range l.bases {
		if b.id == id {
			return id + "@" + s.name()
		}
	}
	return id
}

// forksFor lists the lanes' contexts that a start has to make first.
func (r *Run) forksFor(n *nodeState) []ContextChange {
	if l, _ := n.scope.laneOf(); l == nil || !n.usesContext() {
		return nil
	}
	var out []ContextChange
	for _, id := range r.contextsOf(n) {
		out = r.forkInto(out, n.scope, id)
	}
	return out
}

// forkInto adds the forks that make the context a lane calls id: of a lane in
// a lane, the outer one's first.
func (r *Run) forkInto(out []ContextChange, s *scope, id string) []ContextChange {
	l, s := s.laneOf()
	if l == nil || r.contexts[id] != nil || slices.ContainsFunc(out, func(f ContextChange) bool { return f.ID == id }) {
		return out
	}
	for _, b := range l.bases {
		if id == b.id+"@"+s.name() {
			out = r.forkInto(out, s.owner.scope, b.id)
			return append(out, ContextChange{ID: id, Create: true, Parent: b.from, At: b.at})
		}
	}
	return out
}

// missingContext names a context that the node was given and that is not there, "" if
// there is none.
func (r *Run) missingContext(n *nodeState, forks []ContextChange) string {
	if !n.usesContext() {
		return ""
	}
	for _, id := range r.contextsOf(n) {
		if r.contexts[id] == nil && !slices.ContainsFunc(forks, func(f ContextChange) bool { return f.ID == id }) {
			return id
		}
	}
	return ""
}

// grant gives the node its contexts.
func (r *Run) grant(n *nodeState, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		c := r.contexts[id]
		if c == nil || c.writer != nil && c.writer != n {
			return invalid("context %s cannot be granted to %s", id, n.path())
		}
		c.writer = n
	}
	n.ensureExt().grants = ids
	return nil
}

// releaseGrants gives the node's contexts back and lets the next in line try.
func (r *Run) releaseGrants(n *nodeState) {
	if n.ext == nil {
		return
	}
	for _, id := range n.ext.grants {
		c := r.contexts[id]
		c.writer = nil
		r.readyNextWaiter(c)
	}
	n.ext.grants = nil
}
