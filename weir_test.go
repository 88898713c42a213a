package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
)

func open(t *testing.T, o weir.Options) *weir.Weir {
	t.Helper()
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func parse(t *testing.T, w *weir.Weir, text string) *weir.Flow {
	t.Helper()
	f, err := w.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const reviewFlow = `
weir: 1
name: invoice-review
context: {model: script/demo, system: You review invoices.}
inputs:
  amount: {type: number, required: true}
nodes:
  keep:
    type: transform
    with: {expr: run.inputs.amount, state: {amount: run.inputs.amount}}
  check:
    type: decision
    after: keep
    with: {expr: "state.amount > 1000 ? 'high' : 'low'", branches: [high, low]}
  ask:
    type: userInput
    after: check.high
    with: {prompt: "Approve {{ state.amount }} EUR?", schema: {type: string, enum: [approve, reject]}}
  reply:
    type: llmRequest
    after: check.low
    in: {message: "Write one line that confirms {{ state.amount }} EUR."}
outputs: {decision: "{{ ask.text }}", note: "{{ reply.text }}"}
`

func TestReviewPausesAndContinuesWithAnswer(t *testing.T) {
	ctx := t.Context()
	w := open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	f := parse(t, w, reviewFlow)

	run, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"amount": 2000}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != engine.Paused || len(r.Interrupts) != 1 || r.Interrupts[0].Prompt != "Approve 2000 EUR?" {
		t.Fatalf("got %+v, want a pause with the question", r)
	}
	if err := run.Answer(ctx, r.Interrupts[0].ID, "maybe"); err == nil {
		t.Fatal("an answer outside the schema was taken")
	}
	if err := run.Answer(ctx, r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r, err = run.Wait(ctx); err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v; want completed", r, err)
	}
	if got, err := weir.Output[string](r, "decision"); err != nil || got != "approve" {
		t.Fatalf("decision = %q, %v", got, err)
	}
	if _, ok := r.Outputs.Get("note"); ok {
		t.Fatal("the branch not taken has an output")
	}
}

func TestReviewOfSmallSumAsksTheModel(t *testing.T) {
	ctx := t.Context()
	w := open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	run, err := w.Start(ctx, parse(t, w, reviewFlow), weir.Start{Inputs: map[string]any{"amount": 10.5}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got, err := weir.Output[string](r, "note"); err != nil || got != "Confirmed." {
		t.Fatalf("note = %q, %v", got, err)
	}
	if r.Usage.Calls != 1 {
		t.Errorf("usage = %+v, want one call", r.Usage)
	}
}
