package runner_test

import (
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/weirtest"
)

// completedKeys returns the keys of the effects that a run's journal has as completed.
func completedKeys(t *testing.T, w *weir.Weir, id string) []string {
	t.Helper()
	v, err := w.Inspect(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if done, ok := e.(*engine.EffectCompleted); ok {
				keys = append(keys, done.Key)
			}
		}
	}
	return keys
}

// TestRetryAsksModelAgainAfterRejectedAnswer: also by another process,
// which has nothing but the journal.
func TestRetryAsksModelAgainAfterRejectedAnswer(t *testing.T) {
	t.Parallel()
	const text = `
weir: 1
name: retried
context: {model: script/demo}
nodes:
  n: {type: extract, in: {message: Hm.}, with: {schema: {type: object, required: [amount]}}}
outputs: {amount: "{{ n.value.amount }}"}
`
	s := weirkit.SharedMemory{Store: memory.New()}
	open := func(says ...string) (*weir.Weir, *weir.Flow) {
		w, err := weir.Open(weir.Options{Store: s, Replay: recorded.NewScriptedTurns(weirtest.Says(says...), nil)})
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.Parse("flow.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return w, f
	}
	w, f := open("no", "never")
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Error == nil || r.Error.Code != engine.CodeModelAnswer {
		t.Fatalf("the run %s: %v, %v", r.Status, r.Error, err)
	}
	for i, says := range [][]string{{"no", "nor now"}, {`{"amount": 3}`}} {
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, _ = open(says...)
		run, err = w.OverrideNode(t.Context(), "run", "retry", "n", nil, "ada")
		if err != nil {
			t.Fatal(err)
		}
		if r, err = run.Wait(t.Context()); err != nil || (r.Status == engine.Completed) != (i == 1) {
			t.Fatalf("retry %d: the run %s: %v, %v", i, r.Status, r.Error, err)
		}
	}
	if v, _ := r.Outputs.Get("amount"); v != int64(3) {
		t.Errorf("the amount is %v", v)
	}
	keys := completedKeys(t, w, "run")
	if want := []string{"n/model#1", "n/model#2", "n/model#3", "n/model#4", "n/model#5"}; !slices.Equal(keys, want) {
		t.Errorf("the effects are %q, expected %q", keys, want)
	}
	_ = w.Close(t.Context())
}
