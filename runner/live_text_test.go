package runner

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

func textItem(text string) Item {
	return Item{Run: "r", Path: "a", Attempt: 1, Effect: "a/model#1", Chunk: &llm.Chunk{Text: text}}
}

func TestReaderJoiningAtAnyChunkGetsTheWholeText(t *testing.T) {
	const pieces = 50
	want := ""
	for i := range pieces {
		want += fmt.Sprintf("%d ", i)
	}
	for came := range pieces + 1 {
		h := hub{root: "r", lastEvents: map[string]int64{}}
		h.publishCommit("r", &engine.Commit{First: 1, Events: []engine.Event{&engine.NodeStarted{Path: "a"}}})
		var readers []subscription
		for i := range pieces {
			if i == came || i == pieces/2 { // the second reader comes while the first reads
				readers = append(readers, h.subscribe(0, true))
			}
			h.publishLive(textItem(fmt.Sprintf("%d ", i)))
		}
		readers = append(readers, h.subscribe(0, true))
		for n, a := range readers {
			if got := readerText(t, &h, a); got != want {
				t.Errorf("reader %d that came at piece %d has %q", n, came, got)
			}
		}
	}
}

// readerText returns the text that a reader has: that of the snapshots it was given and
// of the pieces that came after.
func readerText(t *testing.T, h *hub, a subscription) string {
	t.Helper()
	var got strings.Builder
	for _, it := range a.live {
		if !it.Snapshot {
			t.Errorf("what was before the reader came is %+v, not a snapshot", it)
		}
		got.WriteString(it.Chunk.Text)
	}
	for pos := a.pos; pos < h.next; pos++ {
		if it := &h.ring[pos%uint64(len(h.ring))]; it.Chunk != nil {
			got.WriteString(it.Chunk.Text)
		}
	}
	return got.String()
}

func TestVoidTextIsRetractedAndAbsentFromSnapshots(t *testing.T) {
	failure := &engine.Error{Code: "x"}
	for name, tt := range map[string]struct {
		event    engine.Event
		retracts bool
	}{
		"the effect completes":   {&engine.EffectCompleted{Key: "a/model#1"}, false},
		"the effect fails":       {&engine.EffectCompleted{Key: "a/model#1", Error: failure}, true},
		"the node completes":     {&engine.NodeCompleted{Path: "a"}, true},
		"the node fails":         {&engine.NodeFailed{Path: "a", Error: failure}, true},
		"the node tries again":   {&engine.NodeRetrying{Path: "a"}, true},
		"the node is cancelled":  {&engine.NodeCancelled{Path: "a"}, true},
		"the node waits":         {&engine.NodeWaiting{Path: "a"}, true},
		"the node pulls":         {&engine.NodePulling{Path: "a"}, true},
		"the node expands":       {&engine.NodeExpanded{Path: "a"}, true},
		"the node is entered":    {&engine.NodeResumed{Path: "a"}, true},
		"the node is overridden": {&engine.NodeOverridden{Path: "a"}, true},
		"the run completes":      {&engine.RunCompleted{}, true},
		"the run fails":          {&engine.RunFailed{Error: failure}, true},
		"the run is cancelled":   {&engine.RunCancelled{}, true},
		"the call is made again": {nil, true},
	} {
		h := hub{root: "r", lastEvents: map[string]int64{}}
		h.startBuffering()
		h.publishLive(textItem("void"))
		if tt.event == nil {
			again := textItem("")
			again.Chunk = &llm.Chunk{Wait: 1}
			h.publishLive(again)
		} else {
			h.publishCommit("r", &engine.Commit{First: 2, Events: []engine.Event{tt.event}})
		}
		retracted := false
		for pos := h.first; pos < h.next; pos++ {
			it := h.ring[pos%uint64(len(h.ring))]
			retracted = retracted || it.Retracted && it.Effect == "a/model#1" && it.Run == "r"
			if it.Event != nil && retracted != tt.retracts {
				t.Errorf("%s: the event comes and retracted is %v", name, retracted)
			}
		}
		if retracted != tt.retracts {
			t.Errorf("%s: retracted is %v", name, retracted)
		}
		if a := h.subscribe(0, false); len(a.live) > 0 {
			t.Errorf("%s: a reader that comes then is given %q", name, a.live[0].Chunk.Text)
		}
	}
}

func TestTextBeforeAToolCallIsMarkedInterim(t *testing.T) {
	h := hub{root: "r", lastEvents: map[string]int64{}}
	h.startBuffering()
	h.publishLive(textItem("Let me look."))
	calls := textItem("")
	calls.Chunk = &llm.Chunk{Call: &convo.Call{Name: "look"}}
	h.publishLive(calls)
	if it := h.ring[1]; !it.Interim || it.Chunk != nil || it.Effect != "a/model#1" {
		t.Errorf("after the words comes %+v", it)
	}
	if a := h.subscribe(0, false); len(a.live) != 1 || !a.live[0].Interim {
		t.Errorf("the snapshot is %+v", a.live)
	}
	summary := textItem("The talk was of dams.")
	summary.Effect = "a/summary#1"
	h.publishLive(summary)
	if it := h.ring[h.next-1]; !it.Interim {
		t.Error("the words of a summary are not marked")
	}
}

// TestReaderAheadOfTheHubWaitsForIt has a reader that read in the journal that an effect completed subscribe before
// that event is published: the text of the effect would come after its end.
func TestReaderAheadOfTheHubWaitsForIt(t *testing.T) {
	for name, publish := range map[string]func(*hub){
		"the event is published": func(h *hub) {
			h.publishCommit("r", &engine.Commit{First: 2, Events: []engine.Event{&engine.EffectCompleted{Key: "a/model#1"}}})
		},
		"the execution has ended": (*hub).close,
	} {
		t.Run(name, func(t *testing.T) {
			x := &Execution{ID: "r"}
			x.hub = hub{root: "r", lastEvents: map[string]int64{"r": 1}}
			x.hub.publishLive(textItem("said"))
			r := &reader{ctx: t.Context(), x: x, l: &Local{}, at: position{runs: []runPosition{{run: "r", last: 2}}}}
			go func() {
				for waits := false; !waits && t.Context().Err() == nil; runtime.Gosched() {
					x.hub.mu.Lock()
					waits = x.hub.wake != nil
					x.hub.mu.Unlock()
				}
				publish(&x.hub)
			}()
			a, ok := r.subscribe()
			if !ok || len(a.live) > 0 {
				t.Errorf("subscribed: %v, and is given %+v", ok, a.live)
			}
		})
	}
}
