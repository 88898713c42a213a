package builtin_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
)

// workCase is an agent that works for 40 minutes at a time.
type workCase struct {
	maxTime string
	steps   []convo.Message
	works   int
	done    bool
}

// The agent works three times, and waits a day for a person where it is to.
func TestAgentTimeExcludesWaiting(t *testing.T) {
	waiting := []convo.Message{callMessage("work {}"), callMessage("kept {}"), callMessage("work {}"), callMessage("kept {}"), callMessage("work {}"), callMessage("free {}"), textMessage("done")}
	straight := []convo.Message{callMessage("work {}"), callMessage("work {}"), callMessage("work {}"), callMessage("free {}"), textMessage("done")}
	for _, c := range []workCase{
		{"10m", waiting, 1, false},
		{"1h", waiting, 2, false},
		{"90m", waiting, 3, false},
		{"3h", waiting, 3, true},
		{"1h", straight, 2, false},
		{"90m", straight, 3, false},
		{"3h", straight, 3, true},
	} {
		t.Run(fmt.Sprint(c.maxTime, len(c.steps)), func(t *testing.T) { synctest.Test(t, c.check) })
	}
}

func (c workCase) check(t *testing.T) {
	var l effectLog
	work := l.tool("work", "")
	work.Timeout = time.Hour
	at := work.Call
	work.Call = func(ctx context.Context, call tool.Call) (string, error) {
		<-time.After(40 * time.Minute)
		return at(ctx, call)
	}
	w := open(t, weir.Options{
		Providers: models(&scriptedModel{steps: c.steps}),
		Tools:     []*tool.Tool{work, l.tool("kept", tool.ApproveAlways), l.tool("free", "")},
	})
	r := runApproving(t, w, toolFlow("agent", "atMax: stop, maxTime: "+c.maxTime))
	text, err := weir.Output[string](r, "text")
	if err != nil && c.done {
		t.Fatal(err)
	}
	works := 0
	for _, done := range l.all() {
		if done == "work{}" {
			works++
		}
	}
	if done := text == "done"; done != c.done || works != c.works {
		t.Errorf("it worked %d times and said %q, expected %d times and to be done: %t", works, text, c.works, c.done)
	}
}

// runApproving runs a flow to its end and approves what it asks, a day later.
func runApproving(t *testing.T, w *weir.Weir, text string) weir.Result {
	t.Helper()
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := run.Wait(t.Context())
		if err == nil && r.Status == engine.Paused {
			<-time.After(24 * time.Hour)
			err = run.Answer(t.Context(), r.Interrupts[0].ID, "approve")
		}
		if err != nil || r.Status == engine.Failed {
			t.Fatalf("the run %s: %v, %v", r.Status, r.Error, err)
		}
		if r.Status == engine.Completed {
			return r
		}
	}
}
