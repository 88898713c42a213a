package engine

import (
	"container/heap"
	"encoding/json"
	"fmt"
)

// Restore recreates the run of a Snapshot.
func Restore(id string, p *Plan, data []byte) (*Run, error) {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("restore run %s: %w", id, err)
	}
	r := NewRun(id, p)
	if err := r.restore(&s); err != nil {
		return nil, fmt.Errorf("restore run %s: %w", id, err)
	}
	return r, nil
}

func (r *Run) restore(s *snapshot) error {
	start, err := DecodeEvents(s.Start)
	if err != nil || len(start) != 1 {
		return invalid("no start: %v", err)
	}
	first, ok := start[0].(*RunStarted)
	if !ok {
		return invalid("the start is %s", start[0].Kind())
	}
	r.Start, r.parallel = first, max(1, first.Parallel)
	r.events, r.now, r.usage = s.Events, s.Now, s.Usage
	r.sharedUsage = s.Shared
	if err := r.restoreForked(s.Forked); err != nil {
		return err
	}
	r.spent, r.reserved, r.increases = s.Spent, s.Reserved, s.Increases
	if err := r.restoreApprovals(s.Approvals); err != nil {
		return err
	}
	for _, v := range s.State {
		r.set(v.Name, v.Value)
	}
	for _, c := range s.Contexts {
		r.contexts[c.ID] = &contextState{id: c.ID, length: c.Length, parent: c.Parent, at: c.At, grant: []string{c.ID}}
	}
	for i := range s.Scopes {
		if err := r.restoreScope(&s.Scopes[i]); err != nil {
			return err
		}
	}
	if err := r.restoreRest(s); err != nil {
		return err
	}
	return r.restoreWork(s)
}

// restoreWork restores the executing nodes with their contexts, and the ready nodes.
func (r *Run) restoreWork(s *snapshot) error {
	for i := range s.Scopes {
		sc := r.scopes[s.Scopes[i].Name]
		for j := range s.Scopes[i].Nodes {
			sn := &s.Scopes[i].Nodes[j]
			n := &sc.nodes[sn.Index]
			switch n.phase {
			case phaseReady: // a node whose context is busy joins its waiting list again
				heap.Push(&r.ready, n)
			case phaseExecuting:
				r.countExecuting(n, 1)
				if err := r.grant(n, sn.Grants); err != nil {
					return err
				}
			default: // of the waiting nodes, those that share a context keep it
				if err := r.grant(n, sn.Grants); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Run) restoreScope(sn *scopeSnapshot) error {
	var s *scope
	if sn.Name == "" {
		r.root = r.openScope(r.plan.Root, nil, 0, nil)
		s = r.root
	} else {
		n, number := r.iterationOwner(sn.Name)
		if n == nil || n.plan.Body == nil {
			return invalid("scope %s has no composite", sn.Name)
		}
		s = r.openScope(n.plan.Body, n, number, Values(sn.Inputs))
	}
	if len(sn.Edges) != len(s.edges) {
		return invalid("scope %s has %d edges, not %d", sn.Name, len(s.edges), len(sn.Edges))
	}
	for i := range s.edges {
		s.edges[i] = edgeState(sn.Edges[i] - '0')
		if e := &s.plan.edges[i]; !e.lazy && s.edges[i] != edgeUnresolved {
			s.nodes[e.to].pending--
		}
	}
	for i := range sn.Nodes {
		if err := s.restoreNode(&sn.Nodes[i]); err != nil {
			return err
		}
	}
	s.open, s.unneeded = 0, 0
	for i := range s.nodes {
		if n := &s.nodes[i]; n.phase != phaseDone {
			s.open++
			if !n.needed {
				s.unneeded++
			}
		}
	}
	return nil
}

func (s *scope) restoreNode(sn *nodeSnapshot) error {
	if sn.Index < 0 || sn.Index >= len(s.nodes) {
		return invalid("scope %s has no node %d", s.name(), sn.Index)
	}
	n := &s.nodes[sn.Index]
	n.phase, n.status, n.attempt, n.started = sn.Phase, Status(sn.Status), sn.Attempt, sn.Started
	n.needed, n.entered, n.breakPassed, n.outputs = !sn.NotNeeded, sn.Entered, sn.Passed, Values(sn.Outputs)
	if sn.isPlain() {
		return nil
	}
	n.ext = &nodeExt{
		port: sn.Port, earlierIterations: sn.EarlierIterations, earlierAttemptIterations: sn.EarlierAttemptIterations, failure: sn.Failure, metadata: Values(sn.Metadata),
		micros: sn.Micros, cached: sn.Cached, uncounted: sn.Uncounted, cutOff: sn.CutOff, steps: sn.Steps,
	}
	if x := sn.Expand; x != nil {
		n.ext.expansion = &expansion{
			items: fromStored(x.Items), outputs: fromStored(x.Outputs), concurrency: x.Concurrency,
			next: x.Next, running: x.Running, done: x.Done,
		}
	}
	if sn.Facts == nil {
		return nil
	}
	facts, err := DecodeEvents(sn.Facts)
	if err != nil {
		return err
	}
	for _, f := range facts {
		if err := n.ext.applyFact(f); err != nil {
			return err
		}
	}
	return nil
}

// isPlain reports whether the node has none of the rarely used state.
func (sn *nodeSnapshot) isPlain() bool {
	return sn.Facts == nil && sn.Port == "" && sn.EarlierIterations == 0 && sn.Failure == nil && sn.Metadata == nil &&
		!sn.Cached && sn.Steps == nil && sn.Expand == nil && sn.Uncounted == 0 && !sn.CutOff
}

// applyFact restores one fact of a node.
func (x *nodeExt) applyFact(f Event) error {
	switch f := f.(type) {
	case *EffectStarted:
		setInMap(&x.startedEffects, f.Key, f)
	case *EffectCompleted:
		setInMap(&x.effects, f.Key, f)
	case *SteeringAdded:
		x.steering = append(x.steering, f)
	case *SteeringTaken:
		setInMap(&x.steeringTaken, f.Key, f)
	case *InterruptAnswered:
		setInMap(&x.answers, f.ID, &Answer{Value: f.Value, Given: true, By: f.By})
	case *TimerFired:
		setInMap(&x.answers, f.ID, &Answer{})
	case *ChildReported:
		setInMap(&x.answers, f.ID, &Answer{Given: f.Status.Ended(), Child: f})
	default:
		return invalid("%s is not a fact of a node", f.Kind())
	}
	return nil
}

// setInMap sets a key of a map and creates the map on first use.
func setInMap[T any](m *map[string]T, key string, v T) {
	if *m == nil {
		*m = make(map[string]T)
	}
	(*m)[key] = v
}

// restoreRest restores what refers to nodes of all scopes.
func (r *Run) restoreRest(s *snapshot) error {
	waits, err := DecodeEvents(s.Waits)
	if err != nil {
		return err
	}
	for _, e := range waits {
		w, ok := e.(*NodeWaiting)
		if !ok {
			return invalid("%s is not a wait", e.Kind())
		}
		n := r.node(w.Path)
		if n == nil {
			return invalid("the waiting node %s does not exist", w.Path)
		}
		for _, i := range w.Interrupts {
			r.addInterrupt(n, i)
		}
	}
	if err := r.restoreReports(s.Children); err != nil {
		return err
	}
	for _, o := range r.interrupts {
		if o.Kind == AwaitChild && o.Due > 0 && s.Due[o.ID] == 0 { // its timer has fired
			o.timedOut = true
			delete(r.due, o.ID)
		}
	}
	// order: the heap orders timers itself.
	for id, at := range s.Due {
		if r.due[id] == 0 {
			r.setTimer(id, at)
		}
	}
	if len(s.Writers) > 0 {
		r.writers = make(map[string]*nodeState)
	}
	// order: a map is built from a map.
	for k, path := range s.Writers {
		if n := r.node(path); n != nil {
			r.writers[k] = n
		}
	}
	return nil
}

// restoreReports restores the reports of open children.
func (r *Run) restoreReports(data json.RawMessage) error {
	if data == nil {
		return nil
	}
	reports, err := DecodeEvents(data)
	if err != nil {
		return err
	}
	for _, e := range reports {
		c, ok := e.(*ChildReported)
		if !ok || r.byID[c.ID] == nil {
			return invalid("%s is not the report of an open child run", e.Kind())
		}
		r.byID[c.ID].report = c
		r.noteIncreases(r.byID[c.ID])
	}
	return nil
}
