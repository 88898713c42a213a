package runner_test

import (
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

func TestWaitingTurnKeepsItsSnapshot(t *testing.T) {
	t.Parallel()
	model := &weirkit.LookingModel{}
	asked := 0
	w := openWithLook(t, model, func() { asked++ })
	run := weirkit.StartText(t, w, `
weir: 1
name: interleaved
context: {model: ears/m}
nodes:
  pick: {type: tools}
  a: {type: llmRequest, in: {message: "First.", tools: "{{ pick.tools }}"}}
  b: {type: manualInput, after: pick, with: {text: "Meanwhile.", history: true}}
outputs: {a: "{{ a.text }}"}
`)
	r := weirkit.Wait(t, run)
	if r.Status != engine.Paused || len(r.Interrupts) != 1 {
		t.Fatalf("%s %+v %v", r.Status, r.Interrupts, r.Error)
	}
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil || v.Contexts["main"].History.Len() != 1 {
		t.Fatalf("b has not written: %d messages, %v", v.Contexts["main"].History.Len(), err)
	}
	if err := run.Answer(t.Context(), r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed || asked != 1 || len(model.Requests) != 2 {
		t.Errorf("%s %v; %d tool calls, %d model calls", r.Status, r.Error, asked, len(model.Requests))
	}
}
