package engine

import (
	"fmt"

	"github.com/weir-run/weir/flow"
)

// stateOf returns the state that a node sees when it starts.
func (r *Run) stateOf(n *nodeState) State {
	if l, _ := n.scope.laneOf(); l != nil {
		return l.state
	}
	return r.state
}

// write applies a node's changes to the state of the run or of its lane.
func (r *Run) write(n *nodeState, changes []StateChange) {
	if len(changes) == 0 {
		return
	}
	l, _ := n.scope.laneOf()
	if l != nil {
		for _, c := range changes {
			l.state = r.lists.apply(l.state, r.plan.reducers[c.Key], c)
			l.writers[c.Key] = n
		}
		l.changes = append(l.changes, changes...)
		return
	}
	if r.writers == nil {
		r.writers = make(map[string]*nodeState)
	}
	for _, c := range changes {
		before := r.state
		r.state = r.lists.apply(before, r.plan.reducers[c.Key], c)
		r.measure(before, c)
		r.writers[c.Key] = n
	}
}

// set gives a key of the state its first value: of the flow, the run's start or a snapshot.
func (r *Run) set(key string, v Value) {
	r.state = r.state.with(key, held(r.plan.reducers[key], v))
}

// held returns a value as the state keeps it under a reducer.
func held(red flow.Reducer, v Value) Value {
	if m, ok := v.(map[string]any); ok && red == flow.ReduceMerge && len(m) >= minObject {
		return newObject(m)
	}
	return v
}

// apply returns the state with a change, combined with the present value by the key's
// reducer. It costs what is written, not what the key has.
func (g *growing) apply(s State, red flow.Reducer, c StateChange) State {
	if c.Delete {
		return s.without(c.Key)
	}
	old, ok := s.stored(c.Key)
	if list, isList := old.([]any); red == flow.ReduceAppend && isList {
		more, _ := asList(c.Value).([]any)
		return s.with(c.Key, g.extend(list, more))
	}
	if more, is := c.Value.(map[string]any); is && red == flow.ReduceMerge {
		if merged, ok := mergeInto(old, more); ok {
			return s.with(c.Key, merged)
		}
	}
	v, err := Reduce(red, old, ok, c.Value)
	if err != nil {
		return s // CheckWrites prevents this before journaling
	}
	return s.with(c.Key, held(red, v))
}

// Overlay is a state with changes that only its owner sees. It is not safe for concurrent use.
type Overlay struct {
	state State
	lists growing
}

// NewOverlay returns an overlay of base without changes.
func NewOverlay(base State) *Overlay { return &Overlay{state: base} }

// Apply adds a change, which the reducer of its key combines with the present value. A change
// that the reducer cannot take is left out.
func (o *Overlay) Apply(red flow.Reducer, c StateChange) {
	o.state = o.lists.apply(o.state, red, c)
}

// State returns the state with the changes so far. Later changes do not change it.
func (o *Overlay) State() State { return o.state }

// Reducer names the reducer of key, which combines its writes.
func (p *Plan) Reducer(key string) flow.Reducer { return p.reducers[key] }

// CheckWrites reports why a node's changes cannot be committed: an unordered node wrote the
// same key, or the reducer cannot take a value. It returns nil if they can.
func (r *Run) CheckWrites(path string, changes []StateChange) *Error {
	if len(changes) == 0 {
		return nil
	}
	n := r.node(path)
	if n == nil {
		return nil
	}
	l, _ := n.scope.laneOf()
	writers, state := r.writers, r.state
	if l != nil {
		writers, state = l.writers, l.state
	}
	for _, c := range changes {
		red := r.plan.reducers[c.Key]
		if w := writers[c.Key]; w != nil && red == "" && !r.runsAfter(w, n) {
			return stateConflict(path, path, w.path(), c.Key)
		}
		if c.Delete || red == flow.ReduceAppend { // append takes any value
			continue
		}
		old, ok := state.stored(c.Key)
		if err := checkReduce(red, old, ok, c.Value); err != nil {
			return &Error{
				Code: CodeStateReducer, Node: path, Permanent: true,
				Message: fmt.Sprintf("state key %q: %v", c.Key, err),
			}
		}
	}
	if err := r.checkSize(path, changes); l == nil && err != nil {
		return err
	}
	return r.checkLanes(n)
}

// checkLanes finds two iterations that wrote one key without a reducer.
func (r *Run) checkLanes(n *nodeState) *Error {
	if n.ext == nil || n.ext.expansion == nil || n.ext.expansion.fresh {
		return nil
	}
	x, first := n.ext.expansion, make(map[string]int)
	for i, l := range x.lanes {
		if l == nil {
			continue
		}
		for _, c := range l.changes {
			j, ok := first[c.Key]
			if ok && j != i && r.plan.reducers[c.Key] == "" {
				return stateConflict(n.path(), l.writers[c.Key].path(), x.lanes[j].writers[c.Key].path(), c.Key)
			}
			first[c.Key] = i
		}
	}
	return nil
}

// stateConflict returns the error for two unordered writes of a key: a wrote what b had written.
func stateConflict(node, a, b, key string) *Error {
	return &Error{
		Code: CodeStateConflict, Node: node, Permanent: true,
		Message: fmt.Sprintf("nodes %s and %s both write the state key %q and neither runs after the other", b, a, key),
		Hint:    fmt.Sprintf("order them with `after:`, or declare a reducer under `state: {%s: {reducer: ...}}`", key),
	}
}

// runsAfter reports whether b runs after a, or they are the same.
func (r *Run) runsAfter(a, b *nodeState) bool {
	for depth(a.scope) > depth(b.scope) {
		a = a.scope.owner
	}
	for depth(b.scope) > depth(a.scope) {
		b = b.scope.owner
	}
	for a.scope != b.scope {
		if a.scope.owner == b.scope.owner {
			x := a.scope.owner.ext
			return a.scope.number == b.scope.number || x == nil || x.expansion == nil || x.expansion.concurrency <= 1
		}
		a, b = a.scope.owner, b.scope.owner
	}
	return a == b || a.plan.Index == b.plan.Index || a.scope.plan.after(int32(a.plan.Index), int32(b.plan.Index))
}
