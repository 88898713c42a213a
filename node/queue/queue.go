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

// DefaultCapacity is how many entries a queue takes that is not told otherwise.
const DefaultCapacity = 100

// ErrFull is the error of an entry that a queue has no room for.
var ErrFull = errors.New("the queue is full")

// Queue is a queue of entries of one kind: they leave it in the order in which they
// came. It is safe for concurrent use; where several goroutines add to it, the order
// is theirs, and not one that is the same on re-entry: see Host for tools by which a
// model adds.
//
// A node that is entered again makes its queues anew, and fills them with what it
// filled them with before: settings, recorded results of effects, calls of a model.
type Queue[T any] struct {
	capacity int

	mu      sync.Mutex
	entries []T
	refused int
}

// New makes an empty queue; a capacity of 0 or less is DefaultCapacity.
func New[T any](capacity int) *Queue[T] {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	return &Queue[T]{capacity: capacity}
}

// Add puts entries at the end, all of them or, where there is no room for all, none.
// The error is then ErrFull, wrapped with how many there are and may be.
func (q *Queue[T]) Add(entries ...T) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if room := q.capacity - len(q.entries); len(entries) > room {
		q.refused += len(entries)
		return fmt.Errorf("%w: it takes %d entries, and %d wait in it; it has no room for %d more", ErrFull, q.capacity, len(q.entries), len(entries))
	}
	q.entries = append(q.entries, entries...)
	return nil
}

// Next takes the first entry out; ok is false where there is none.
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

// Entries are those that wait, the first first.
func (q *Queue[T]) Entries() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.entries)
}

// Len is how many entries wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// Capacity is how many entries may wait.
func (q *Queue[T]) Capacity() int { return q.capacity }

// Refused is how many entries there was no room for.
func (q *Queue[T]) Refused() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refused
}
