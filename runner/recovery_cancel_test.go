package runner_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
)

func TestCancelWhileRunPausesIsAccepted(t *testing.T) {
	t.Parallel()
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	f, err := w.Parse("two.yaml", []byte(`
weir: 1
name: two
nodes:
  a: {type: userInput, with: {prompt: "A?"}}
  b: {type: userInput, with: {prompt: "B?"}}
outputs: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		run, err := w.Start(t.Context(), f, weir.Start{})
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, run)
		if len(r.Interrupts) != 2 {
			t.Fatalf("%s %v", r.Status, r.Error)
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, err := w.Answer(t.Context(), run.ID, r.Interrupts[0].ID, "yes", "")
			if err != nil && !errors.Is(err, runner.ErrNoInterrupt) && !errors.Is(err, runner.ErrStatus) {
				t.Errorf("answer: %v", err)
			}
		})
		both.Go(func() {
			on, err := w.Cancel(t.Context(), run.ID, "", "")
			if err != nil {
				t.Errorf("cancel: %v", err)
				return
			}
			if r, err := on.Wait(t.Context()); err != nil || r.Status != engine.Cancelled {
				t.Errorf("cancelled, it is %s %v", r.Status, err)
			}
		})
		both.Wait()
	}
}
