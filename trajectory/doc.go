// Package trajectory records what an agent did and why as a graph: what was
// asked, which answers and tool calls it led to, what was concluded, and the
// data that was used and made.
//
// A [Recorder] holds one round of one agent, a [Book] hands recorders out, a
// [Storage] keeps rounds, and [Join] makes one graph of the rounds of a session.
// A trajectory is a projection: whatever it says can be made again from the
// journal.
//
// It must not know flows, runners, models or databases: it sees messages and
// values, and declares what it wants of whoever stores it.
package trajectory
