package weir_test

import (
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
)

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
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	f := weirkit.Parse(t, w, reviewFlow)

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
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	run, err := w.Start(ctx, weirkit.Parse(t, w, reviewFlow), weir.Start{Inputs: map[string]any{"amount": 10.5}})
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
