// Package lru is a map of limited size that evicts the entry that was used least recently. It must not know what it
// stores.
package lru

import "container/list"

// Map has at most Max entries. The zero value is an empty map with Max 0, which stores nothing. A Map is not safe for
// concurrent use.
type Map[K comparable, V any] struct {
	// Max is the maximum number of entries.
	Max int

	byKey  map[K]*list.Element
	recent list.List // of entry[K, V], the most recently used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Put sets the value of a key and makes it the most recently used. If there are more than Max entries, it evicts one.
func (m *Map[K, V]) Put(key K, value V) {
	m.Remove(key)
	if m.byKey == nil {
		m.byKey = make(map[K]*list.Element)
	}
	m.byKey[key] = m.recent.PushFront(entry[K, V]{key, value})
	if m.recent.Len() > m.Max {
		m.Remove(m.recent.Back().Value.(entry[K, V]).key)
	}
}

// Get returns the value of a key and makes it the most recently used.
func (m *Map[K, V]) Get(key K) (V, bool) {
	e := m.byKey[key]
	if e == nil {
		var none V
		return none, false
	}
	m.recent.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Remove removes a key and returns its value.
func (m *Map[K, V]) Remove(key K) (V, bool) {
	e := m.byKey[key]
	if e == nil {
		var none V
		return none, false
	}
	delete(m.byKey, key)
	return m.recent.Remove(e).(entry[K, V]).value, true
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.recent.Len() }
