package weirkit

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
)

// StartText parses a flow and starts it as the run with the id "run".
func StartText(t *testing.T, w *weir.Weir, text string) *weir.Run {
	t.Helper()
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Wait waits until a run has ended or paused, for at most a minute.
func Wait(t *testing.T, run *weir.Run) weir.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := run.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// RunToEnd starts a run of a flow and answers its questions until it ends.
func RunToEnd(t *testing.T, w *weir.Weir, f *weir.Flow) weir.Result {
	t.Helper()
	run, err := w.Start(t.Context(), f, weir.Start{User: "ute"})
	if err != nil {
		t.Fatal(err)
	}
	return AnswerAll(t, w, run)
}
