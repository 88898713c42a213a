package runner_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
)

// TestModelThatFailsIsNotCalledByAnyNode lets five calls of a model fail and then asks it
// with each node type that calls models.
func TestModelThatFailsIsNotCalledByAnyNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ node, code string }{
		"llmRequest":        {`{type: llmRequest, with: {model: fake/a}, in: {message: "Well?"}}`, engine.CodeBreakerOpen},
		"agent":             {`{type: agent, with: {model: fake/a}, in: {message: "Do."}}`, engine.CodeBreakerOpen},
		"categorizer":       {`{type: categorizer, with: {model: fake/a, categories: {x: X, y: Y}}, in: {message: "x"}}`, engine.CodeBreakerOpen},
		"extract":           {`{type: extract, with: {model: fake/a, schema: {type: object, properties: {x: {type: string}}}}, in: {message: "x"}}`, engine.CodeBreakerOpen},
		"summarize":         {`{type: summarize, with: {model: fake/a}, in: {text: "x"}}`, engine.CodeBreakerOpen},
		"the next model":    {`{type: llmRequest, with: {models: [fake/a, fake/b]}, in: {message: "Well?"}}`, ""},
		"on its cause":      {`{type: llmRequest, with: {models: [fake/a, fake/b], on: [model_unavailable]}, in: {message: "Well?"}}`, ""},
		"on breaker_open":   {`{type: llmRequest, with: {models: [fake/a, fake/b], on: [breaker_open]}, in: {message: "Well?"}}`, ""},
		"on other causes":   {`{type: llmRequest, with: {models: [fake/a, fake/b], on: [model_filtered]}, in: {message: "Well?"}}`, engine.CodeBreakerOpen},
		"an agent's models": {`{type: agent, with: {models: [fake/a, fake/b]}, in: {message: "Do."}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBrokenModel(t, c.node, c.code)
		})
	}
}

// checkBrokenModel lets five calls of fake/a fail and runs a node, which must end with code
// and not call that model.
func checkBrokenModel(t *testing.T, node, want string) {
	t.Helper()
	m := &faultyModels{fail: func(model string, _ int) error {
		if model == "a" {
			return &llm.Error{Code: engine.CodeModelUnavailable, Message: "down"}
		}
		return nil
	}}
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"fake": m}})
	for i := range 5 {
		r := weirkit.Wait(t, startAs(t, w, fmt.Sprint("down", i), "weir: 1\nname: f\nnodes: {ask: {type: llmRequest, with: {model: fake/a}, in: {message: hm}}}\n"))
		if r.Error == nil || r.Error.Code != engine.CodeModelUnavailable {
			t.Fatal(r.Error)
		}
	}
	before := len(m.calls)
	r := weirkit.Wait(t, weirkit.StartText(t, w, "weir: 1\nname: g\nnodes: {ask: "+node+"}\n"))
	code := ""
	if r.Error != nil {
		code = r.Error.Code
	}
	if code != want || want != "" && (len(m.calls) != before || r.Usage.CostMicros != 0 || r.Error.RetryAfter <= 0) {
		t.Errorf("%s: %+v, after %d calls; usage %+v", r.Status, r.Error, len(m.calls)-before, r.Usage)
	}
	for _, call := range m.calls[before:] {
		if call[0] == 'a' {
			t.Error("the model was called:", call)
		}
	}
}

// startAs starts a flow as the run with that id.
func startAs(t *testing.T, w *weir.Weir, id, text string) *weir.Run {
	t.Helper()
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, text), weir.Start{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return run
}
