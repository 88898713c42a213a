// Package trajectory records what an agent did and why as a graph: what it was asked,
// the answers and tool calls that followed, its conclusions, and the data that it used
// and made.
//
// A [Recorder] holds one round of one agent, a [Book] returns recorders, a [Storage]
// keeps rounds, and [Join] makes one graph of the rounds of a session. A trajectory is
// a projection: it can be computed again from the journal.
//
// It must not know flows, runners, models or databases: it receives messages and
// values, and declares the interface of a storage.
package trajectory
