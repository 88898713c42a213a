package runner

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Item is one thing seen of a run or of a run below it: an event of its journal, or
// live output, which is in no journal. A reader that applies items in order has for each
// effect the text that its result has in the journal:
//
//   - Chunk with text adds to what was seen of Effect.
//   - Snapshot replaces what was seen of Effect by Chunk.
//   - Retracted takes back what was seen of Effect.
//   - Gap takes back what was seen of all effects that have not completed; snapshots of
//     those that are streaming follow.
//   - An engine.EffectCompleted has the result of the effect of that key, in place of
//     what was seen of it.
type Item struct {
	// Run is the id of the run that the item is of, and Above what stands before its
	// paths in the tree of the watched run: "" for that run itself, "review>" for the
	// child run of its node review.
	Run        string
	PathPrefix string
	// Number is the event's number in its run, from 1; 0 for live output.
	Number int64
	// At is Unix time in milliseconds.
	At    int64
	Event engine.Event
	// Path is the node, Attempt its attempt and Effect the key of the effect in it, as
	// the journal has it ("draft/model#1"), that live output is of. Effect is "" for
	// what the node's function puts out by itself.
	Path    string
	Attempt int
	Effect  string
	// Chunk is the piece, or the whole of a snapshot; nil for events, retractions and
	// gaps.
	Chunk *llm.Chunk
	// Interim says that the text of the effect is known to be no answer of its node: it
	// belongs to a call that calls tools, or that was made for something else, such as
	// a summary. An item with Interim and no Chunk says so of the text that was seen.
	Interim bool
	// Snapshot says that Chunk is all that the effect has put out so far; it replaces
	// what was seen of it.
	Snapshot bool
	// Retracted says that what was seen of the effect is void: it failed, is made again,
	// or its attempt has ended without it.
	Retracted bool
	// Gap says that live output was lost here, because the reader was too slow or has
	// come back. No event is lost.
	Gap bool

	attached bool // no item for readers: the run is executed here from event Number on
	seq      int64
	pos      uint64 // position behind it in the hub; 0 for an item that was not read from there
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
