// Package crash tests that a run survives the death of its process. It kills the real
// binary before its writes, one after another. A separate process, the ledger, lists
// every effect that the binary requests.
//
// It must not know the internals of the binary: it starts it like a user, observes its
// system calls, and reads a copy of the journal.
package crash
