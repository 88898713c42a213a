package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// openWithLook opens a Weir with a model and the tool look, each call of which needs an approval
// and calls called.
func openWithLook(t *testing.T, model weir.Provider, called func()) *weir.Weir {
	t.Helper()
	look := &tool.Tool{
		Name: "look", Description: "Looks.", Approve: tool.ApproveAlways,
		Call: func(context.Context, tool.Call) (string, error) { called(); return "a look", nil },
	}
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"ears": model}, Tools: []*weir.Tool{look}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	return w
}

// A reader holds no grant: others write its context while it works.
func TestWaitingReaderKeepsItsSnapshot(t *testing.T) {
	t.Parallel()
	wrote := make(chan struct{})
	model := &gatedModel{wait: wrote}
	w := openWithLook(t, model, func() {})
	run := weirkit.StartText(t, w, `
weir: 1
name: reader
context: {model: ears/m}
nodes:
  pick: {type: tools}
  a: {type: llmRequest, in: {message: "First.", tools: "{{ pick.tools }}"}, with: {skipHistory: true}}
  b: {type: manualInput, after: pick, with: {text: "Meanwhile.", history: true}}
outputs: {a: "{{ a.text }}"}
`)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // until b has written
		v, err := w.Inspect(t.Context(), "run", 0)
		if err == nil && v.Contexts["main"].History.Len() == 1 {
			break
		}
	}
	close(wrote)
	r := weirkit.Wait(t, run)
	if r.Status != engine.Paused || len(r.Interrupts) != 1 {
		t.Fatalf("%s %+v %v", r.Status, r.Interrupts, r.Error)
	}
	if err := run.Answer(t.Context(), r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Errorf("%s %v", r.Status, r.Error)
	}
	sent, err := w.InspectPrompts(t.Context(), "run", "a")
	if err != nil || len(sent) != 2 {
		t.Fatalf("%d calls are told, %v", len(sent), err)
	}
	for _, s := range sent {
		if !s.Proven {
			t.Errorf("%s is not proven", s.Key)
		}
	}
}

// gatedModel is heard, but answers only once wait is closed.
type gatedModel struct {
	weirkit.LookingModel
	wait chan struct{}
}

func (g *gatedModel) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	select {
	case <-g.wait:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.LookingModel.Generate(ctx, req, emit)
}

// scriptedErrorModel fails as a script says, by the number of the call: a code, or "".
type scriptedErrorModel struct {
	n      atomic.Int32
	script []string
}

func (s *scriptedErrorModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	n := int(s.n.Add(1))
	if n <= len(s.script) && s.script[n-1] != "" {
		return nil, &llm.Error{Code: s.script[n-1], Message: "not now", Retry: false}
	}
	if req.Purpose == llm.PurposeSummary {
		return &llm.Response{Message: convo.Message{Text: "It was said."}}, nil
	}
	m := convo.Message{Text: "Seen."}
	if len(req.Tools) > 0 && req.Messages[len(req.Messages)-1].Role != convo.Tool {
		m = convo.Message{Calls: []convo.Call{{ID: fmt.Sprint("c", n), Name: "look", Arguments: "{}"}}}
	}
	return &llm.Response{Message: m}, nil
}

// What an attempt has got over is not asked again by the next one: what came
// after it was asked with it.
func TestRetryKeepsRecoveredFailures(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]string{
		"a summary that failed":       {"model_unavailable", "", "model_unavailable"},
		"a request that was too long": {"", "model_context_length", "", "model_unavailable"},
	} {
		model := &scriptedErrorModel{script: script}
		look := &tool.Tool{Name: "look", Description: "Looks.", ReadOnly: true, Call: func(context.Context, tool.Call) (string, error) { return "a look", nil }}
		w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"ears": model}, Tools: []*weir.Tool{look}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
		var said strings.Builder
		for i := range 40 {
			fmt.Fprintf(&said, "        - {role: user, text: \"%d %s\"}\n", i, strings.Repeat("word ", 50))
		}
		run := weirkit.StartText(t, w, `
weir: 1
name: shaky
context: {model: ears/m, budget: {window: 3000, reserve: 600}, view: {strategy: summary}}
nodes:
  pick: {type: tools}
  past:
    type: injectMessages
    in:
      messages:
`+said.String()+`
  a: {type: llmRequest, after: past, in: {message: "First.", tools: "{{ pick.tools }}"}}
outputs: {a: "{{ a.text }}"}
`)
		r := weirkit.Wait(t, run)
		if r.Status != engine.Failed || r.Error.Code != "model_unavailable" {
			t.Fatalf("%s: %s %v after %d calls", name, r.Status, r.Error, model.n.Load())
		}
		if run, err = w.OverrideNode(t.Context(), "run", "retry", "a", nil, ""); err != nil {
			t.Fatal(err)
		}
		if r = weirkit.Wait(t, run); r.Status != engine.Completed {
			t.Errorf("%s: %s %v", name, r.Status, r.Error)
		}
	}
}

// b writes the context while a waits; then a fails, and a person has it tried
// again: what it got of the model was asked before b wrote.
func TestOverriddenRetryKeepsSnapshot(t *testing.T) {
	t.Parallel()
	model := &scriptedErrorModel{script: []string{"", "model_unavailable"}}
	w := openWithLook(t, model, func() {})
	run := weirkit.StartText(t, w, `
weir: 1
name: forced
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
	if err := run.Answer(t.Context(), r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Failed || r.Error.Code != "model_unavailable" {
		t.Fatalf("%s %v", r.Status, r.Error)
	}
	run, err := w.OverrideNode(t.Context(), "run", "retry", "a", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Errorf("%s %v", r.Status, r.Error)
	}
}

func TestUserMessageIsNotDuplicatedAfterWait(t *testing.T) {
	t.Parallel()
	model := &weirkit.LookingModel{}
	w := openWithLook(t, model, func() {})
	run := weirkit.StartText(t, w, `
weir: 1
name: doubled
context: {model: ears/m}
nodes:
  pick: {type: tools}
  hello: {type: manualInput, with: {text: "Hello."}}
  a: {type: llmRequest, in: {message: "{{ hello.text }}", tools: "{{ pick.tools }}"}}
  b: {type: llmRequest, after: pick, in: {message: "{{ hello.text }}"}}
outputs: {a: "{{ a.text }}"}
`)
	r := weirkit.Wait(t, run)
	if r.Status != engine.Paused || len(r.Interrupts) != 1 {
		t.Fatalf("%s %+v %v", r.Status, r.Interrupts, r.Error)
	}
	if err := run.Answer(t.Context(), r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Fatalf("%s %v", r.Status, r.Error)
	}
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, m := range v.Contexts["main"].History.All() {
		said[m.ID]++
	}
	for id, n := range said {
		if n > 1 {
			t.Errorf("%s is there %d times", id, n)
		}
	}
	if len(said) != 7 { // what was said, and a call, its result and an answer of both
		t.Errorf("%d messages: %v", len(said), said)
	}
}

func TestReaderKeepsSnapshotAfterCrash(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	begun := make(chan struct{}, 1)
	open := func(model weir.Provider, block bool) *weir.Weir {
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		look := &tool.Tool{Name: "look", Description: "Looks.", ReadOnly: true, Call: func(ctx context.Context, _ tool.Call) (string, error) {
			if block {
				begun <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "a look", nil
		}}
		w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"ears": model}, Tools: []*weir.Tool{look}})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	wrote := make(chan struct{})
	w := open(&gatedModel{wait: wrote}, true)
	weirkit.StartText(t, w, `
weir: 1
name: reader
context: {model: ears/m}
budget: {maxCalls: 10}
nodes:
  pick: {type: tools}
  a: {type: llmRequest, in: {message: "First.", tools: "{{ pick.tools }}"}, with: {skipHistory: true}}
  b: {type: manualInput, after: pick, with: {text: "Meanwhile.", history: true}}
outputs: {a: "{{ a.text }}"}
`)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // until b has written
		if v, err := w.Inspect(t.Context(), "run", 0); err == nil && v.Contexts["main"].History.Len() == 1 {
			break
		}
	}
	close(wrote)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	_ = w.Close(ctx)
	cancel()
	w = open(&weirkit.LookingModel{}, false)
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	run, err := w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Errorf("%s %v", r.Status, r.Error)
	}
}
