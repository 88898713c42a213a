package engine

import "github.com/benbjohnson/immutable"

// State is an immutable snapshot of a run's state. Copying it is free; a write creates a
// new State that shares the unchanged parts.
type State struct {
	m *immutable.SortedMap[string, Value]
}

// Get returns the value under key. It must not be changed.
func (s State) Get(key string) (Value, bool) {
	if s.m == nil {
		return nil, false
	}
	return s.m.Get(key)
}

// Keys returns the keys in alphabetical order, in a new list.
func (s State) Keys() []string {
	if s.m == nil {
		return nil
	}
	keys := make([]string, 0, s.m.Len())
	for it := s.m.Iterator(); !it.Done(); {
		k, _, _ := it.Next()
		keys = append(keys, k)
	}
	return keys
}

// Len returns the number of keys.
func (s State) Len() int {
	if s.m == nil {
		return 0
	}
	return s.m.Len()
}

// with returns the state with key set to v.
func (s State) with(key string, v Value) State {
	if s.m == nil {
		s.m = immutable.NewSortedMap[string, Value](nil)
	}
	return State{s.m.Set(key, v)}
}

// without returns the state without key.
func (s State) without(key string) State {
	if s.m == nil {
		return s
	}
	return State{s.m.Delete(key)}
}
