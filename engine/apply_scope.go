package engine

import (
	"slices"
	"strings"
)

// expansion holds a composite's iterations: those of its newest NodeExpanded.
type expansion struct {
	items        []Values
	outputs      []Values
	lanes        []*laneResult // by item, nil until done; only with fork
	earlierLanes []*laneResult // from the attempt's earlier expansions
	concurrency  int
	fork         bool
	fresh        bool  // nothing of the lanes is committed
	state        State // as it was at the expansion, for lanes
	bases        []laneBase
	next         int // index of the next item to start
	running      int
	done         int
	separate     *separate // nil unless iterations fail or end without their siblings
}

// laneResult is the result of an iteration that its composite commits.
type laneResult struct {
	changes  []StateChange
	writers  map[string]*nodeState
	contexts []string // the lane's own
	commits  []string // the contexts of the lane that have messages of their own
}

func (x *expansion) complete() bool { return x.done == len(x.items) }

func (r *Run) applyExpanded(e *NodeExpanded) error {
	n, err := r.nodeInPhase(e.Path, phaseExecuting, e)
	if err != nil {
		return err
	}
	if n.plan.Body == nil {
		return invalid("%s: node %s has no body", e.Kind(), e.Path)
	}
	if err := checkRace(n, e); err != nil {
		return err
	}
	m := n.ensureExt()
	if m.expansion != nil {
		m.earlierIterations += len(m.expansion.items)
	}
	x := &expansion{
		items: e.Items, outputs: make([]Values, len(e.Items)), concurrency: max(1, e.Concurrency),
		fork: e.Fork, fresh: e.Fork && e.Fresh, separate: separateOf(e),
	}
	if e.Fork {
		x.lanes = make([]*laneResult, len(e.Items))
		x.state, x.bases = r.stateOf(n), r.laneBases(n)
		for i := range x.bases {
			if x.fresh {
				x.bases[i].at = 0
			}
		}
		if m.expansion != nil && m.expansion.fork {
			r.continueLanes(m.expansion, x)
		}
	}
	m.expansion = x
	r.endEntry(n, phaseExpanding)
	r.startWaitTimer(n)
	if r.listIfCancelled(n) {
		return nil
	}
	if len(e.Items) == 0 {
		r.makeReady(n)
		return nil
	}
	r.expandable = append(r.expandable, n)
	return nil
}

// continueLanes starts the lanes of an expansion at the end of the previous expansion's
// lanes: the iterations of a loop share one lane, one after another.
func (r *Run) continueLanes(before, x *expansion) {
	x.earlierLanes = append(before.earlierLanes, before.lanes...)
	x.state, x.bases = before.state, before.bases
	for _, l := range before.lanes {
		for _, c := range l.changes {
			x.state = r.lists.apply(x.state, r.plan.reducers[c.Key], c)
		}
		for _, id := range l.contexts {
			for i, b := range x.bases {
				if b.id == outerContext(id) {
					x.bases = slices.Clone(x.bases)
					x.bases[i].from, x.bases[i].at = id, r.contexts[id].length
				}
			}
		}
	}
}

// allLanes returns the lanes of the attempt in the order of their iterations.
func (x *expansion) allLanes() []*laneResult {
	if len(x.earlierLanes) == 0 {
		return x.lanes
	}
	return slices.Concat(x.earlierLanes, x.lanes)
}

// laneBases records the current length of every context that the node can see.
func (r *Run) laneBases(n *nodeState) []laneBase {
	l, s := n.scope.laneOf()
	var out []laneBase
	made := "" // contexts created in the lane have their creator's path as a prefix
	if l != nil {
		made = s.prefix
		for _, b := range l.bases {
			id := b.id + "@" + s.name()
			base := laneBase{id, id, b.at}
			if c := r.contexts[base.id]; c != nil {
				base.at = c.length
			}
			out = append(out, base)
		}
	}
	// order: sorted below.
	for id, c := range r.contexts {
		if strings.HasPrefix(id, made) && !strings.Contains(id, "@") {
			out = append(out, laneBase{id, id, c.length})
		}
	}
	slices.SortFunc(out, func(a, b laneBase) int { return strings.Compare(a.id, b.id) })
	return out
}

// trackForks records the contexts that lanes forked; a fork is named after its lane.
func (r *Run) trackForks(forks []ContextChange) {
	for _, f := range forks {
		if s := r.scopes[f.ID[strings.LastIndexByte(f.ID, '@')+1:]]; s != nil && s.lane != nil {
			s.lane.contexts = append(s.lane.contexts, f.ID)
		}
	}
}

func (r *Run) applyIteration(e *IterationStarted) error {
	n, number := r.iterationOwner(e.Path)
	if n == nil || n.phase != phaseExpanding {
		return invalid("%s: %s is not expanding", e.Kind(), e.Path)
	}
	x := n.ext.expansion
	i := number - n.ext.earlierIterations - 1
	if i != x.next || i >= len(x.items) {
		return invalid("%s: %s is not the next iteration", e.Kind(), e.Path)
	}
	x.next++
	x.running++
	s := r.openScope(n.plan.Body, n, number, x.items[i])
	if x.fork {
		s.lane = &lane{state: x.state, bases: x.bases, writers: make(map[string]*nodeState)}
	}
	r.startEntries(s)
	return nil
}

// iterationOwner finds the composite and number of "refine#2".
func (r *Run) iterationOwner(path string) (*nodeState, int) {
	i := strings.LastIndexByte(path, '#')
	if i < 0 {
		return nil, 0
	}
	number := 0
	for _, c := range path[i+1:] {
		if c < '0' || c > '9' || number > 1<<40 {
			return nil, 0
		}
		number = number*10 + int(c-'0')
	}
	n := r.node(path[:i])
	if n == nil || n.ext == nil || n.ext.expansion == nil {
		return nil, 0
	}
	return n, number
}

func (r *Run) applyIterationDone(e *IterationCompleted) error {
	s := r.scopes[e.Path]
	if s == nil || s.owner == nil || !s.listed {
		return invalid("%s: %s has not finished", e.Kind(), e.Path)
	}
	n := s.owner
	x := n.ext.expansion
	i := s.number - n.ext.earlierIterations - 1
	x.outputs[i] = e.Outputs
	if s.lane != nil {
		x.lanes[i] = &laneResult{changes: s.lane.changes, writers: s.lane.writers, contexts: s.lane.contexts, commits: r.lanesWithMessages(s.lane)}
		if x.fresh {
			x.lanes[i].commits = nil
		}
	}
	x.running--
	x.done++
	r.unlistFinished(s)
	delete(r.scopes, e.Path)
	if x.separate != nil && x.separate.race {
		r.winRace(n, i)
	}
	if x.complete() {
		r.makeReady(n)
	} else {
		r.expandable = append(r.expandable, n)
	}
	return nil
}

// lanesWithMessages lists the lane contexts that hold messages of their own.
func (r *Run) lanesWithMessages(l *lane) []string {
	var out []string
	for _, id := range l.contexts {
		if c := r.contexts[id]; c.length > c.at {
			out = append(out, id)
		}
	}
	return out
}

// Lanes lists the contexts, in iteration order, whose messages the completion
// of a composite must append to the contexts they were forked from.
func (r *Run) Lanes(path string) []LaneCommit {
	n := r.node(path)
	if n == nil || n.ext == nil || n.ext.expansion == nil || !n.ext.expansion.complete() {
		return nil
	}
	var out []LaneCommit
	for _, l := range n.ext.expansion.allLanes() {
		for _, id := range l.commits {
			c := r.contexts[id]
			out = append(out, LaneCommit{Lane: id, Parent: outerContext(id), From: c.at, To: c.length})
		}
	}
	return out
}

// outerContext returns the context that a lane's own context was forked from.
func outerContext(id string) string { return id[:strings.LastIndexByte(id, '@')] }

// LaneCommit says that the messages From..To of Lane are appended to Parent.
type LaneCommit struct {
	Lane, Parent string
	From, To     int
}

// LaneChanges lists the state changes of a composite's lanes in index order.
func (r *Run) LaneChanges(path string) []StateChange {
	n := r.node(path)
	if n == nil || n.ext == nil || n.ext.expansion == nil || !n.ext.expansion.complete() || n.ext.expansion.fresh {
		return nil
	}
	var out []StateChange
	for _, l := range n.ext.expansion.allLanes() {
		out = append(out, l.changes...)
	}
	return out
}

// dropIterations removes a composite's iterations and their lanes.
func (r *Run) dropIterations(n *nodeState) {
	if n.ext == nil || n.ext.expansion == nil {
		return
	}
	x := n.ext.expansion
	for _, l := range x.allLanes() {
		if l != nil {
			for _, id := range l.contexts {
				delete(r.contexts, id)
			}
		}
	}
	for i := range x.items {
		if s := r.scopes[n.path()+"#"+itoa(n.ext.earlierIterations+i+1)]; s != nil {
			r.dropScope(s)
		}
	}
	n.ext.earlierIterations += len(x.items)
	n.ext.earlierAttemptIterations = n.ext.earlierIterations
	n.ext.expansion = nil
}

// dropScope removes a scope and all scopes below it.
func (r *Run) dropScope(s *scope) {
	delete(r.scopes, s.name())
	r.unlistFinished(s)
	r.cancelling = slices.DeleteFunc(r.cancelling, func(c *scope) bool { return c == s })
	for i := range s.nodes {
		n := &s.nodes[i]
		r.closeInterrupts(n)
		r.dropIterations(n)
	}
	if s.lane != nil {
		for _, id := range s.lane.contexts {
			delete(r.contexts, id)
		}
	}
}
