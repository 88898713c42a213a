// Package engine is the pure core: what has happened in a run (Apply) and what
// follows from it (Decide).
//
// A Run is the fold of its events. Apply adds one event; Decide names the next
// command that follows from what the run is now, itself an event to be applied
// and journaled, until nothing more follows. So replaying a journal is Apply
// only, and an old journal stays readable when Decide changes.
//
// It must not know the outside: no I/O, clock, randomness, goroutine or logger,
// and nothing that depends on the order of a map. Time reaches it only as the
// time of a commit. It knows contexts by id and position and values as opaque.
// A Run belongs to one goroutine; the Values and States it hands out are
// immutable and may go anywhere.
package engine
