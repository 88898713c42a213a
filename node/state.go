package node

import (
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// State is the run's state as one node sees it: the snapshot taken when the
// node started, and the node's own changes, which nobody else sees before it
// completes. It belongs to the node's goroutine.
type State struct {
	base     engine.State
	reducers func(key string) flow.Reducer
	changes  []engine.StateChange // in order; without a reducer one per key
}

// NewState is for those who run nodes. Reducers names the reducer of a key, ""
// for none.
func NewState(base engine.State, reducers func(key string) flow.Reducer) State {
	return State{base: base, reducers: reducers}
}

// Get returns the value under key and whether there is one. Lists and objects
// are the caller's own to change; null is a value.
func (s *State) Get(key string) (engine.Value, bool) {
	v, ok := s.base.Get(key)
	for i := range s.changes {
		c := &s.changes[i]
		if c.Key != key {
			continue
		}
		if c.Delete {
			return nil, false
		}
		if r, err := engine.Reduce(s.reducers(key), v, ok, c.Value); err == nil {
			v, ok = r, true
		}
	}
	return engine.Copy(v), ok
}

// Keys lists the keys in alphabetical order.
func (s *State) Keys() []string {
	keys := s.base.Keys()
	for _, c := range s.changes {
		i, found := slices.BinarySearch(keys, c.Key)
		switch {
		case c.Delete && found:
			keys = slices.Delete(keys, i, i+1)
		case !c.Delete && !found:
			keys = slices.Insert(keys, i, c.Key)
		}
	}
	return keys
}

// All returns the whole state as a fresh map.
func (s *State) All() map[string]any {
	m := make(map[string]any)
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	return m
}

// Reducer names how what is written under a key combines with what is there,
// flow.ReduceNone where it takes its place.
func (s *State) Reducer(key string) flow.Reducer {
	if s.reducers == nil {
		return flow.ReduceNone
	}
	return s.reducers(key)
}

// Snapshot is the state as the node found it, without the node's changes. It
// is immutable and costs nothing.
func (s *State) Snapshot() engine.State { return s.base }

// Set writes one key; the key's reducer combines it with what is there.
func (s *State) Set(key string, v engine.Value) error {
	n, err := engine.Normalize(v)
	if err != nil {
		return err
	}
	s.put(engine.StateChange{Key: key, Value: n})
	return nil
}

// Update writes several keys; on an error none of them.
func (s *State) Update(values map[string]any) error {
	n, err := engine.Normalize(values)
	if err != nil {
		return err
	}
	m := n.(map[string]any)
	for _, k := range slices.Sorted(keysOf(m)) {
		s.put(engine.StateChange{Key: k, Value: m[k]})
	}
	return nil
}

// Delete removes a key; removing what is not there is no change.
func (s *State) Delete(key string) {
	if _, ok := s.Get(key); ok {
		s.put(engine.StateChange{Key: key, Delete: true})
	}
}

// Changes lists what the node wrote, for those who run nodes.
func (s *State) Changes() []engine.StateChange { return s.changes }

// put adds a change. It takes the place of an earlier one of its key, unless
// the two combine.
func (s *State) put(c engine.StateChange) {
	for i := range s.changes {
		if s.changes[i].Key == c.Key && s.reducers(c.Key) == flow.ReduceNone {
			s.changes[i] = c
			return
		}
	}
	s.changes = append(s.changes, c)
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
