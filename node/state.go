package node

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// State is the run's state as seen by one node: the snapshot of the node's start, and the
// node's own changes, which are invisible to others until it completes. It belongs to the
// node's goroutine.
type State struct {
	base     engine.State
	reducers func(key string) flow.Reducer
	changes  []engine.StateChange // in order; without a reducer one for each key
	// positions maps a key to its indexes in changes. It is built when there are many
	// changes.
	positions map[string][]int
	// own is the state with the first applied changes. It is created when the node reads
	// the state after a change.
	own     *engine.Overlay
	applied int
}

// minIndexed is the number of changes from which positions is used instead of a search.
const minIndexed = 16

// changesOf lists the indexes of a key's changes, in order.
func (s *State) changesOf(key string) []int {
	if s.positions != nil || len(s.changes) >= minIndexed {
		if s.positions == nil {
			s.positions = make(map[string][]int, 2*len(s.changes))
			for i := range s.changes {
				s.positions[s.changes[i].Key] = append(s.positions[s.changes[i].Key], i)
			}
		}
		return s.positions[key]
	}
	var out []int
	for i := range s.changes {
		if s.changes[i].Key == key {
			out = append(out, i)
		}
	}
	return out
}

// NewState is for runners. Reducers returns the reducer of a key, "" for none.
func NewState(base engine.State, reducers func(key string) flow.Reducer) State {
	return State{base: base, reducers: reducers}
}

// Get returns the value under key and whether it exists. Lists and objects belong to the
// caller and may be changed; null is a value.
func (s *State) Get(key string) (engine.Value, bool) {
	v, ok := s.current().Get(key)
	return engine.Copy(v), ok
}

// current returns the state with the node's changes. Each change is applied once.
func (s *State) current() engine.State {
	if len(s.changes) == 0 {
		return s.base
	}
	if s.own == nil {
		s.own = engine.NewOverlay(s.base)
	}
	for ; s.applied < len(s.changes); s.applied++ {
		c := s.changes[s.applied]
		s.own.Apply(s.Reducer(c.Key), c)
	}
	return s.own.State()
}

// Keys lists the keys in alphabetical order.
func (s *State) Keys() []string { return s.current().Keys() }

// All returns the whole state in a new map.
func (s *State) All() map[string]any {
	m := make(map[string]any)
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	return m
}

// Reducer returns the reducer that combines writes to key with its present value;
// flow.ReduceNone if a write replaces it.
func (s *State) Reducer(key string) flow.Reducer {
	if s.reducers == nil {
		return flow.ReduceNone
	}
	return s.reducers(key)
}

// Snapshot returns the state as of the node's start, without the node's changes. It is
// immutable and free.
func (s *State) Snapshot() engine.State { return s.base }

// Set writes one key; the key's reducer combines it with the present value.
func (s *State) Set(key string, v engine.Value) error {
	if err := s.checkRoom(1); err != nil {
		return err
	}
	n, err := engine.Normalize(v)
	if err != nil {
		return err
	}
	s.addChange(engine.StateChange{Key: key, Value: n})
	return nil
}

// Update writes several keys; on an error none of them.
//
// More than MaxStateKeys changes are an error.
func (s *State) Update(values map[string]any) error {
	if err := s.checkRoom(len(values)); err != nil {
		return err
	}
	n, err := engine.Normalize(values)
	if err != nil {
		return err
	}
	m := n.(map[string]any)
	for _, k := range slices.Sorted(keysOf(m)) {
		s.addChange(engine.StateChange{Key: k, Value: m[k]})
	}
	return nil
}

// MaxStateKeys is the maximum number of state changes of one node.
const MaxStateKeys = 100_000

func (s *State) checkRoom(more int) error {
	if len(s.changes)+more <= MaxStateKeys {
		return nil
	}
	return &engine.Error{
		Code: engine.CodeValue, Permanent: true,
		Message: fmt.Sprintf("the node changes the state %d times, and the limit is %d", len(s.changes)+more, MaxStateKeys),
		Hint:    "put the entries into one object or list under one key",
	}
}

// Delete removes a key. Removing a missing key is no change.
func (s *State) Delete(key string) {
	if _, ok := s.current().Members().Get(key); ok {
		s.addChange(engine.StateChange{Key: key, Delete: true})
	}
}

// Changes returns the node's writes, for runners.
func (s *State) Changes() []engine.StateChange { return s.changes }

// addChange adds a change. It replaces an earlier change of its key, unless the two
// combine.
func (s *State) addChange(c engine.StateChange) {
	if before := s.changesOf(c.Key); len(before) > 0 && s.reducers(c.Key) == flow.ReduceNone {
		s.changes[before[0]] = c
		if before[0] < s.applied {
			s.own.Apply(flow.ReduceNone, c)
		}
		return
	}
	if s.positions != nil {
		s.positions[c.Key] = append(s.positions[c.Key], len(s.changes))
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
