// Package crash is the proof that a run outlives its process: the real binary
// is killed at its writes, one after another, while a process of its own, the
// ledger, keeps the list of every effect that it was asked for.
//
// It must not know the insides of what it kills: it starts the binary as a
// person would, sees what the kernel sees, and reads the journal from a copy.
package crash
