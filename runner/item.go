package runner

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Item is one item of the stream of a run and its child runs: an event of a journal, or live output, which is in no
// journal. A reader that applies items in order has for each effect the text that its result has in the journal:
//
//   - Chunk with text extends the output of Effect.
//   - Snapshot replaces the output of Effect by Chunk.
//   - Retracted voids the output of Effect.
//   - Gap voids the output of all effects that have not completed; snapshots of
//     those that are streaming follow.
//   - An engine.EffectCompleted has the result of the effect with that key, which
//     replaces its output.
type Item struct {
	// Run is the id of the run to which the item belongs, and PathPrefix is the prefix of its paths in the tree of the
	// watched run: "" for that run itself, "review>" for the child run of its node review, "ask/tool#1>" for the flow
	// that the first tool call of its node ask runs.
	Run        string
	PathPrefix string
	// Number is the event's number in its run, from 1; 0 for live output.
	Number int64
	// At is the Unix time in milliseconds.
	At    int64
	Event engine.Event
	// Path is the node, Attempt its attempt and Effect the key of its effect, as in the journal ("draft/model#1"),
	// that produced live output. Effect is "" for output of the node's function itself.
	Path    string
	Attempt int
	Effect  string
	// Chunk is a piece of output, or all of it in a snapshot; nil for events, retractions and gaps.
	Chunk *llm.Chunk
	// Interim means that the text of the effect is known not to be the answer of its node: it belongs to a call that
	// calls tools, or that has another purpose, such as a summary. An item with Interim and no Chunk says so about
	// the text so far.
	Interim bool
	// Snapshot means that Chunk is the whole output of the effect so far; it replaces the earlier output.
	Snapshot bool
	// Retracted means that the output of the effect is void: the effect failed, is repeated, or its attempt has ended
	// without it.
	Retracted bool
	// Gap means that live output was lost here, because the reader was too slow or has reconnected. No event is lost.
	Gap bool

	lane     string // the composite in whose lane the node runs; see laneOf
	attached bool   // not an item for readers: the run is executed here from event Number on
	seq      int64
	pos      uint64 // position after it in the hub; 0 for an item that was not read from there
	from     *position
}

// terminal reports whether an event ends its run.
func terminal(e engine.Event) bool {
	switch e.(type) {
	case *engine.RunCompleted, *engine.RunFailed, *engine.RunCancelled:
		return true
	}
	return false
}
