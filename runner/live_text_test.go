package runner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

func TestAReaderThatComesAtAnyPieceHasTheTextFromItsFirstByte(t *testing.T) {
	const pieces = 50
	want := ""
	for i := range pieces {
		want += fmt.Sprintf("%d ", i)
	}
	for came := range pieces + 1 {
		var h hub
		h.committed(&engine.Commit{First: 1, Events: []engine.Event{&engine.NodeStarted{Path: "a"}}})
		var readers []arrival
		for i := range pieces {
			if i == came || i == pieces/2 { // the second reader comes beside the first
				readers = append(readers, h.join(0))
			}
			h.publish(Item{Path: "a", Attempt: 1, Chunk: &llm.Chunk{Text: fmt.Sprintf("%d ", i)}})
		}
		readers = append(readers, h.join(0))
		for n, a := range readers {
			if got := textRead(t, &h, a); got != want {
				t.Errorf("reader %d that came at piece %d has %q", n, came, got)
			}
		}
	}
}

// textRead is the text that a reader has: that of the snapshots it was given and
// of the pieces that came after.
func textRead(t *testing.T, h *hub, a arrival) string {
	t.Helper()
	var got strings.Builder
	for _, it := range a.live {
		if !it.Snapshot {
			t.Errorf("what was before the reader came is %+v, not a snapshot", it)
		}
		got.WriteString(it.Chunk.Text)
	}
	for pos := a.pos; pos < h.next; pos++ {
		got.WriteString(h.ring[pos%hubSize].Chunk.Text)
	}
	return got.String()
}

func TestTextOfACallThatHasEndedOrIsMadeAgainIsInNoSnapshot(t *testing.T) {
	for name, end := range map[string]func(*hub){
		"completed": func(h *hub) {
			h.committed(&engine.Commit{First: 2, Events: []engine.Event{&engine.EffectCompleted{Key: "a/model#1"}}})
		},
		"failed": func(h *hub) {
			h.committed(&engine.Commit{First: 2, Events: []engine.Event{&engine.NodeFailed{Path: "a"}}})
		},
		"made again": func(h *hub) { h.publish(Item{Path: "a", Attempt: 1, Chunk: &llm.Chunk{Wait: 1}}) },
	} {
		var h hub
		h.publish(Item{Path: "a", Attempt: 1, Chunk: &llm.Chunk{Text: "void"}})
		end(&h)
		if a := h.join(0); len(a.live) > 0 {
			t.Errorf("%s: a reader that comes then is given %q", name, a.live[0].Chunk.Text)
		}
	}
}
