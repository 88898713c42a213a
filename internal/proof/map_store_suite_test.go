package proof

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/storetest"
)

func TestStoreOfMapsPassesTheJournalTier(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Subject{Open: func(_ testing.TB, clock func() time.Time) store.Store { return newMapStore(clock) }})
}

const mapStoreFlow = `
weir: 1
name: maps
inputs: {n: {type: number, required: true}}
nodes:
  twice: {type: transform, in: {n: "{{ run.inputs.n }}"}, with: {expr: inputs.n * 2}}
  ask: {type: userInput, after: twice, with: {prompt: Go on?}}
outputs: {v: "{{ twice.value }}", said: "{{ ask.text }}"}
`

func TestStoreOfMapsRunsFlowsAndNamesWhatItLacks(t *testing.T) {
	t.Parallel()
	w, err := weir.Open(weir.Options{Store: newMapStore(time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context()) //nolint:errcheck // nothing is left to lose
	f, err := w.Parse("maps.yaml", []byte(mapStoreFlow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "r", Inputs: map[string]any{"n": 21}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Paused {
		t.Fatalf("got %+v, %v, want a question", r, err)
	}
	if run, err = w.Answer(t.Context(), "r", r.Interrupts[0].ID, "yes", ""); err != nil {
		t.Fatal(err)
	}
	if r, err = run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v", r, err)
	}
	_, err = w.Session(t.Context(), f, weir.SessionOptions{User: "ada"})
	if u, ok := errors.AsType[*store.Unsupported](err); !ok || u.Capability != "sessions" {
		t.Errorf("a session: got %v, want that sessions are not supported", err)
	}
	if _, err := weir.Open(weir.Options{Store: newMapStore(time.Now), Recover: true}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("recovery: got %v, want that it is not supported", err)
	}
}
