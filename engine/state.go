package engine

import "github.com/benbjohnson/immutable"

// State is an immutable snapshot of a run's state. Copying it is free; a write creates a
// new State that shares the unchanged parts.
type State struct {
	m *immutable.SortedMap[string, Value]
}

// Get returns the value under key. It must not be changed. A large object that was merged is
// built anew by each call: Members reads single members of it.
func (s State) Get(key string) (Value, bool) {
	v, ok := s.stored(key)
	if o, is := v.(*Object); is {
		return o.All(), ok
	}
	return v, ok
}

// stored returns the value under key as the state has it: an object under the reducer
// `merge` may be an *Object.
func (s State) stored(key string) (Value, bool) {
	if s.m == nil {
		return nil, false
	}
	return s.m.Get(key)
}

// All returns the values of all keys in a new map. They must not be changed.
func (s State) All() map[string]any {
	m := make(map[string]any, s.Len())
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	return m
}

// Members returns the state as expressions read it.
func (s State) Members() StateMembers { return StateMembers{s} }

// StateMembers is a State of which a large object can be read one member at a time.
type StateMembers struct{ state State }

// Get returns the value under key, a Value or an *Object. It must not be changed.
func (m StateMembers) Get(key string) (any, bool) { return m.state.stored(key) }

// Len returns the number of keys.
func (m StateMembers) Len() int { return m.state.Len() }

// All returns the values of all keys as Values, in a new map. They must not be changed.
func (m StateMembers) All() map[string]any { return m.state.All() }

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
