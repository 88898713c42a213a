package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

func TestTheClockIsMovedOnlyWhereWaitsAreSkipped(t *testing.T) {
	t.Parallel()
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(context.Background()) }()
	if err := w.MoveClock(time.Now().Add(time.Hour)); err == nil {
		t.Error("the clock of the system was moved")
	}
	if waits, ok := w.Waits(); ok {
		t.Error(waits)
	}
}

func TestTimersFireWhenTheClockIsMoved(t *testing.T) {
	t.Parallel()
	w, err := weir.Open(weir.Options{Skip: func(map[string][]engine.Interrupt) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(context.Background()) }()
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: asks
nodes:
  ask: {type: userInput, with: {prompt: "Now?", timeout: 2h}, onError: {value: none}}
  later: {type: wait, after: ask, with: {for: 3h}}
outputs: {text: "{{ ask.text }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	ask := waitsOf(t, w)
	if open := ask.Open["run"]; len(open) != 1 || open[0].ID != "ask:ask#1" {
		t.Fatal(ask)
	}
	for _, to := range []time.Duration{-time.Hour, time.Hour} { // neither is the time limit
		if err := w.MoveClock(time.UnixMilli(ask.Now).Add(to)); err != nil {
			t.Fatal(err)
		}
		if now := waitsOf(t, w); len(now.Open["run"]) != 1 || now.Now < ask.Now {
			t.Error(now)
		}
	}
	if err := w.MoveClock(time.UnixMilli(ask.Now).Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if now := waitsOf(t, w); len(now.Open) != 1 || len(now.Open["run"]) != 0 {
		t.Error(now)
	}
	if err := w.MoveClock(time.UnixMilli(ask.Now).Add(6 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if text, _ := r.Outputs.Get("text"); err != nil || text != "none" {
		t.Error(r, err)
	}
	if took := time.Until(time.UnixMilli(waitsOf(t, w).Now)); took < 5*time.Hour {
		t.Error(took)
	}
}

// waitsOf waits until all runs only wait.
func waitsOf(t *testing.T, w *weir.Weir) runner.Waits {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		if waits, ok := w.Waits(); ok {
			return waits
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the runs do not rest")
		}
	}
}
