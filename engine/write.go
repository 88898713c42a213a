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
			l.state = r.applyChange(l.state, c)
			l.writers[c.Key] = n
		}
		l.changes = append(l.changes, changes...)
		return
	}
	if r.writers == nil {
		r.writers = make(map[string]*nodeState)
	}
	for _, c := range changes {
		r.state = r.applyChange(r.state, c)
		r.measure(c)
		r.writers[c.Key] = n
	}
}

func (r *Run) applyChange(s State, c StateChange) State {
	if c.Delete {
		return s.without(c.Key)
	}
	old, ok := s.Get(c.Key)
	if !ok {
		old = nil
	}
	red := r.plan.reducers[c.Key]
	if list, isList := old.([]any); red == flow.ReduceAppend && isList {
		more, _ := asList(c.Value).([]any)
		return s.with(c.Key, r.lists.extend(list, more))
	}
	v, err := Reduce(red, old, ok, c.Value)
	if err != nil {
		return s // CheckWrites prevents this before journaling
	}
	return s.with(c.Key, v)
}

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
		old, ok := state.Get(c.Key)
		if _, err := Reduce(red, old, ok, c.Value); err != nil {
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
