// Package trajectory records the work of an agent as a graph: the query, the answers and tool calls that followed,
// the conclusions, and the data that was used and made. A [Recorder] holds one round of one agent, a [RecorderPool]
// returns recorders, a [Storage] stores rounds, and [JoinRounds] makes one graph of the rounds of a session. A
// trajectory is a projection: it can be computed again from the journal. It must not know flows, runners, models or
// databases: it receives messages and values, and declares the interface of a storage.
package trajectory
