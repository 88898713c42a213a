// Package engine is the pure core: it computes the state of a run from its events
// (Apply) and the next event (Decide).
//
// A Run is the fold of its events. Apply adds one event. Decide returns the next event
// that follows from the current state; the runner applies and journals it, until
// Decide returns none. Replaying a journal uses Apply only, so old journals stay
// readable when Decide changes.
//
// It must not depend on anything outside: no I/O, clock, randomness, goroutine, logger
// or map order. The time of a commit is its only time. It knows contexts by id and
// position, and does not interpret values. A Run belongs to one goroutine; the Values
// and States that it returns are immutable and may be shared.
package engine
