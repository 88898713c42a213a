package engine

import (
	"container/heap"
	"slices"

	"github.com/weir-run/weir/flow"
)

// nodeHeap holds the ready nodes in flow order. It may hold nodes that are no longer ready;
// they are dropped when they are reached.
type nodeHeap []*nodeState

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return lessInFlowOrder(h[i], h[j]) }
func (h nodeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *nodeHeap) Push(x any) { *h = append(*h, x.(*nodeState)) }

// Pop implements heap.Interface.
func (h *nodeHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}

// contextState is what the engine knows about a context.
type contextState struct {
	id      string
	length  int // number of messages
	parent  string
	at      int
	writer  *nodeState
	waiters nodeHeap
	grant   []string // {id}, shared by all grants of only this context
}

// ContextLength returns the number of messages in the context, -1 if it does not exist.
func (r *Run) ContextLength(id string) int {
	if c := r.contexts[id]; c != nil {
		return c.length
	}
	return -1
}

// makeReady puts a node on the agenda, or opens its interruptBefore first.
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

// nextStart returns the first ready node, in flow order, for which a slot and its contexts
// are free, and the contexts that it is granted. Nodes with busy contexts are moved to the
// waiting lists of those contexts.
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

// releaseWaits offers the contexts that a node stopped waiting for to other nodes.
func (r *Run) releaseWaits(n *nodeState) {
	if n.ext != nil {
		r.offerContexts(n.ext.waitsFor)
	}
}

// offerContexts readies the next waiting node of each free context.
func (r *Run) offerContexts(ids []string) {
	for _, id := range ids {
		if c := r.contexts[id]; c != nil && c.writer == nil {
			r.readyNextWaiter(c)
		}
	}
}

// readyNextWaiter readies the first node that still waits for the context.
func (r *Run) readyNextWaiter(c *contextState) {
	for len(c.waiters) > 0 {
		if n := heap.Pop(&c.waiters).(*nodeState); n.startable() {
			heap.Push(&r.ready, n)
			return
		}
	}
}

// busyContext returns a context of the list that another node is writing.
func (r *Run) busyContext(n *nodeState, ids []string) *contextState {
	for _, id := range ids {
		if c := r.contexts[id]; c != nil && c.writer != nil && c.writer != n {
			return c
		}
	}
	return nil
}

// grantsFor lists the contexts that the node may write, sorted; usually one.
func (r *Run) grantsFor(n *nodeState) []string {
	if n.plan.Use != flow.ContextWrite {
		return n.mergeGrants()
	}
	return r.contextsOf(n)
}

// contextsOf lists the contexts that the node uses: those of its incoming handles, or else
// that of the scope.
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

// context returns the id of the scope's own context: the one connected to the surrounding
// composite, or else main.
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

// mergeGrants lists the contexts that a composite's lanes are merged into.
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

// handleOn returns the incoming handle of a context port.
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

// localID resolves a context id for a node: inside a lane it is the lane's own fork.
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

// forksFor lists the contexts of the lane that a start must create first.
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

// forkInto adds the forks that create the lane's context id. For a lane inside a lane the
// outer fork comes first.
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

// missingContext returns a context that the node was given and that does not exist, "" if
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

// grant grants the contexts to the node.
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

// releaseGrants releases the node's contexts and readies the next waiting nodes.
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
