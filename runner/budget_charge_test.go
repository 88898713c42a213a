package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
)

const manyCalls = `
weir: 1
name: parallel
context: {model: meter/m, maxOutput: 1000}
budget: {maxTokens: 1500}
nodes:
  many:
    type: forEach
    in: {items: "{{ [1, 2, 3, 4, 5, 6, 7, 8] }}"}
    with:
      concurrency: 8
      body:
        nodes: {ask: {type: llmRequest, in: {message: "Well?"}, with: {skipHistory: true}}}
        outputs: {said: "{{ ask.text }}"}
outputs: {said: "{{ many.results }}"}
`

func TestCancelWhileCallsWaitForBudget(t *testing.T) {
	t.Parallel()
	m := &countingModel{block: make(chan struct{}), begun: make(chan struct{}, 8)}
	w := openMetered(t, m, nil)
	// One call has room, and what it leaves is no room for another.
	run := weirkit.StartText(t, w, strings.Replace(manyCalls, "maxTokens: 1500", "maxTokens: 1050", 1))
	<-m.begun // the others wait
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := w.Cancel(ctx, "run", "somebody", "enough"); err != nil {
		t.Fatal(err)
	}
	close(m.block)
	if r := weirkit.Wait(t, run); r.Status != engine.Cancelled || m.calls.Load() != 1 {
		t.Errorf("%s after %d calls", r.Status, m.calls.Load())
	}
}

// rateLimitedModel fails every other call in a way that passes.
type rateLimitedModel struct{ n atomic.Int32 }

func (f *rateLimitedModel) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	if f.n.Add(1)%2 == 1 {
		return nil, &llm.Error{Code: "model_overloaded", Message: "not now", Retry: true, Retried: true}
	}
	return &llm.Response{Message: convo.Message{Text: "Yes."}, Usage: llm.Usage{Input: 100, Output: 50}}, nil
}

func TestRetriedFailedCallsAreNotCharged(t *testing.T) {
	t.Parallel()
	f := &rateLimitedModel{}
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"meter": f}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	text := strings.ReplaceAll(questions(3, "budget: {maxCalls: 3}\n"), "{type: llmRequest,", "{type: llmRequest, retry: {attempts: 3, backoff: 1ms},")
	r := weirkit.Wait(t, weirkit.StartText(t, w, text))
	if r.Status != engine.Completed || r.Usage.Calls != 3 {
		t.Errorf("%s %v, used %+v", r.Status, r.Error, r.Usage)
	}
}

func TestInspectPromptsShowsCachedNode(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	w := openMetered(t, m, nil)
	text := strings.ReplaceAll(questions(2, ""), "{type: llmRequest,", "{type: llmRequest, cache: true,")
	if r := weirkit.Wait(t, weirkit.StartText(t, w, text)); r.Status != engine.Completed || m.calls.Load() != 1 {
		t.Fatalf("%s %v after %d calls", r.Status, r.Error, m.calls.Load())
	}
	for node, calls := range map[string]int{"q0": 1, "q1": 0} {
		sent, err := w.InspectPrompts(t.Context(), "run", node)
		if err != nil || len(sent) != calls || calls == 1 && !sent[0].Proven {
			t.Errorf("%s: %d calls are told, want %d: %+v %v", node, len(sent), calls, sent, err)
		}
	}
}
