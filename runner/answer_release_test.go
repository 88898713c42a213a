package runner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

func TestAnswerWaitsForRunBeingReleased(t *testing.T) {
	t.Parallel()
	s := memory.New()
	w := weirkit.Open(t, weir.Options{Store: s})
	f := weirkit.Parse(t, w, `
weir: 1
name: asks
nodes:
  ask: {type: userInput, with: {prompt: "Who?"}}
outputs: {who: "{{ ask.text }}"}
`)
	run, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Paused {
		t.Fatalf("got %v, %v", r.Status, err)
	}
	lease, err := s.Acquire(t.Context(), "r", "elsewhere:1:x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := w.Answer(t.Context(), "r", r.Interrupts[0].ID, "Ada", "")
		asked <- err
	}()
	select {
	case err := <-asked:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := s.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	if _, err := w.Answer(t.Context(), "r", r.Interrupts[0].ID, "Bob", ""); errors.Is(err, store.ErrOwned) || err == nil {
		t.Errorf("the second answer: %v", err)
	}
}
