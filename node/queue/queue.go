// Package queue implements first-in-first-out work queues for the node type agent and
// for custom node types.
//
// It must not know what an entry is or who processes it.
package queue

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// DefaultCapacity is the default capacity of a queue.
const DefaultCapacity = 100

// ErrFull means that a queue has no room for an entry.
var ErrFull = errors.New("the queue is full")

// Queue is a first-in-first-out queue. It is safe for concurrent use, but the order of
// concurrent additions is not deterministic on re-entry; for tools by which a model adds
// entries, see Host.
//
// A re-entered node creates its queues again and fills them with the same entries: from
// settings, recorded results of effects, and calls of a model.
type Queue[T any] struct {
	capacity int

	mu      sync.Mutex
	entries []T
	refused int
}

// New returns an empty queue; a capacity of 0 or less means DefaultCapacity.
func New[T any](capacity int) *Queue[T] {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	return &Queue[T]{capacity: capacity}
}

// Add appends all entries or, if they do not fit, none. The error is then ErrFull, with the
// present and maximum number of entries.
func (q *Queue[T]) Add(entries ...T) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if room := q.capacity - len(q.entries); len(entries) > room {
		q.refused += len(entries)
		return fmt.Errorf("%w: its capacity is %d entries, %d are waiting, and %d more do not fit", ErrFull, q.capacity, len(q.entries), len(entries))
	}
	q.entries = append(q.entries, entries...)
	return nil
}

// Next removes and returns the first entry; ok is false if there is none.
func (q *Queue[T]) Next() (entry T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) == 0 {
		return entry, false
	}
	entry = q.entries[0]
	q.entries = slices.Delete(q.entries, 0, 1)
	return entry, true
}

// Entries returns the waiting entries in order.
func (q *Queue[T]) Entries() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.entries)
}

// Len returns the number of waiting entries.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// Capacity returns the maximum number of waiting entries.
func (q *Queue[T]) Capacity() int { return q.capacity }

// Refused returns the number of entries that did not fit.
func (q *Queue[T]) Refused() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refused
}
