package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// effectLog counts what is done outside, across processes.
type effectLog struct {
	mu   sync.Mutex
	done []string
}

func (l *effectLog) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, what)
}

// clear begins a new page.
func (l *effectLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = nil
}

// all returns what was done, in alphabetical order.
func (l *effectLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.done)
	slices.Sort(all)
	return all
}

// tool returns a tool that is entered in the ledger.
func (l *effectLog) tool(name string, approve tool.Approval) *tool.Tool {
	return &tool.Tool{
		Name: name, Description: "Does " + name + ".", Approve: approve,
		Call: func(_ context.Context, c tool.Call) (string, error) {
			l.add(name + c.Arguments)
			return name + " done", nil
		},
	}
}

// scriptedModel is a model whose turns are lists of calls, or a text. Which one it
// gives follows from the request alone, so that several processes may have it:
// by the number of the assistant's messages in it.
type scriptedModel struct {
	steps []convo.Message
	l     *effectLog
}

func textMessage(text string) convo.Message { return convo.Message{Text: text} }

// callMessage are calls written as "name {arguments}".
func callMessage(list ...string) convo.Message {
	var m convo.Message
	for i, c := range list {
		name, args, _ := strings.Cut(c, " ")
		m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprintf("c%d", i), Name: name, Arguments: args})
	}
	return m
}

// Generate gives the next turn.
func (p *scriptedModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	n := 0
	for _, m := range req.Messages {
		if m.Role == convo.Assistant {
			n++
		}
	}
	if p.l != nil {
		p.l.add(fmt.Sprintf("model %d", n))
	}
	if n >= len(p.steps) {
		return nil, &llm.Error{Code: "replay_divergence", Message: "there are no more turns"}
	}
	m := p.steps[n]
	m.Role = convo.Assistant
	for i := range m.Calls {
		m.Calls[i].ID = fmt.Sprintf("s%d-%d", n, i)
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 100, Output: 10}}, nil
}

// toolFlow returns a flow with one node of a type that may call every tool.
func toolFlow(typ, with string) string {
	return `
weir: 1
name: asks
context: {model: script/demo}
nodes:
  pick: {type: tools}
  ask: {type: ` + typ + `, in: {message: "Go.", tools: "{{ pick.tools }}"}, with: {` + with + `}}
outputs: {text: "{{ ask.text }}"}
`
}

// processWorld is a durable record and what is offered to the processes that run it.
type processWorld struct {
	path   string
	tools  []*tool.Tool
	models map[string]weir.Provider
}

func newWorld(t *testing.T, model weir.Provider, tools ...*tool.Tool) *processWorld {
	t.Helper()
	return &processWorld{filepath.Join(t.TempDir(), "weir.db"), tools, models(model)}
}

// process runs do in a Weir of its own over the record.
func (w *processWorld) process(t *testing.T, do func(ctx context.Context, p *weir.Weir) *weir.Run) weir.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	store, err := sqlite.Open(ctx, w.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := weir.Open(weir.Options{Store: store, Providers: w.models, Tools: w.tools})
	if err != nil {
		t.Fatal(err)
	}
	r, err := do(ctx, p).Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *processWorld) start(t *testing.T, text string) weir.Result {
	t.Helper()
	return w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
		f, err := p.Parse("flow.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Start(ctx, f, weir.Start{ID: "run"})
		if err != nil {
			t.Fatal(err)
		}
		return run
	})
}

// answer answers the only question that is open, in a new process.
func (w *processWorld) answer(t *testing.T, r weir.Result, v any) weir.Result {
	t.Helper()
	if r.Status != engine.Paused || len(r.Interrupts) == 0 {
		t.Fatalf("the run is %s (%v) and asks nothing", r.Status, r.Error)
	}
	return w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
		run, err := p.Answer(ctx, "run", r.Interrupts[0].ID, v, "ann")
		if err != nil {
			t.Fatal(err)
		}
		return run
	})
}

func prompts(r weir.Result) []string {
	var out []string
	for _, i := range r.Interrupts {
		prompt, _, _ := strings.Cut(i.Prompt, ".")
		out = append(out, strings.TrimPrefix(prompt, "The model asks to call "))
	}
	return out
}

func TestUnguardedCallsRunOnceBeforeTheNodeWaits(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{l: &l, steps: []convo.Message{
		callMessage(`free {"n":1}`, `kept {"n":2}`, `free {"n":3}`, `kept {"n":4}`), textMessage("done"),
	}}, l.tool("free", ""), l.tool("kept", tool.ApproveAlways))

	r := w.start(t, toolFlow("llmRequest", ""))
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":2}`, `kept with {"n":4}`}) {
		t.Fatalf("the questions are %q", got)
	}
	if got := l.all(); !reflect.DeepEqual(got, []string{`free{"n":1}`, `free{"n":3}`, "model 0"}) {
		t.Fatalf("before any answer was done: %q", got)
	}
	r = w.answer(t, r, "approve")
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":4}`}) {
		t.Fatalf("after one answer the questions are %q", got)
	}
	r = w.answer(t, r, map[string]any{"approve": false, "reason": "four is too many"})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	want := []string{`free{"n":1}`, `free{"n":3}`, `kept{"n":2}`, "model 0", "model 1"}
	if got := l.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("in all was done %q, expected %q", got, want)
	}
}

func TestParallelCallsKeepTheirKeysOnReentry(t *testing.T) {
	var l effectLog
	batch := []string{`kept {"n":0}`}
	for n := range 12 {
		batch = append(batch, fmt.Sprintf(`free {"n":%d}`, n), fmt.Sprintf(`kept {"n":%d}`, n+1))
	}
	w := newWorld(t, &scriptedModel{steps: []convo.Message{callMessage(batch...), textMessage("done")}}, l.tool("free", ""), l.tool("kept", tool.ApproveOnce))
	r := w.answer(t, w.start(t, toolFlow("llmRequest", "")), "approve")
	if r.Status != engine.Completed || len(l.all()) != 25 {
		t.Errorf("the run %s: %v; done was %q", r.Status, r.Error, l.all())
	}
}

func TestModelSeesTheReasonOfARejection(t *testing.T) {
	var l effectLog
	model := &orderedModel{turns: []string{`call kept {"n":1}`, "I see."}}
	w := newWorld(t, model, l.tool("kept", tool.ApproveAlways))
	r := w.answer(t, w.start(t, toolFlow("llmRequest", "")), map[string]any{"approve": false, "reason": "not today"})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	m := model.asked[1].Messages
	last := m[len(m)-1]
	if last.Role != convo.Tool || !last.Failed || !strings.Contains(last.Text, "refused") || !strings.Contains(last.Text, "not today") {
		t.Errorf("the model received %+v", last)
	}
	if got := l.all(); got != nil {
		t.Errorf("done was %q", got)
	}
}

func TestApproveOnceAsksUntilOneCallIsAllowed(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{steps: []convo.Message{
		callMessage(`kept {"n":1}`, `kept {"n":2}`, `kept {"n":3}`), callMessage(`kept {"n":4}`), textMessage("done"),
	}}, l.tool("kept", tool.ApproveOnce))
	r := w.start(t, toolFlow("llmRequest", ""))
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":1}`}) {
		t.Fatalf("the questions are %q", got)
	}
	r = w.answer(t, r, "reject")
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":2}`}) {
		t.Fatalf("after a refusal the questions are %q", got)
	}
	r = w.answer(t, r, "approve")
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v, asks %q", r.Status, r.Error, prompts(r))
	}
	if got := l.all(); !reflect.DeepEqual(got, []string{`kept{"n":2}`, `kept{"n":3}`, `kept{"n":4}`}) {
		t.Errorf("done was %q", got)
	}
}

func TestApproveAlwaysAsksForEveryCall(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{steps: []convo.Message{callMessage(`kept {}`), callMessage(`kept {}`), textMessage("done")}}, l.tool("kept", tool.ApproveAlways))
	r := w.start(t, toolFlow("llmRequest", ""))
	first := r.Interrupts[0].ID
	r = w.answer(t, r, "approve")
	if r.Status != engine.Paused || r.Interrupts[0].ID == first {
		t.Fatalf("the second call was not asked about: %s, %v", r.Status, r.Interrupts)
	}
	if r = w.answer(t, r, "approve"); r.Status != engine.Completed || len(l.all()) != 2 {
		t.Fatalf("the run %s: %v; done was %q", r.Status, r.Error, l.all())
	}
}

func TestApprovalIsBoundToTheShownTool(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{steps: []convo.Message{callMessage(`kept {}`), textMessage("done")}}, l.tool("kept", tool.ApproveAlways))
	// The name comes by a value, so that the run does not pin the tool.
	named := strings.NewReplacer("{type: tools}", `{type: transform, with: {expr: "['kept']"}}`, "pick.tools", "pick.value")
	r := w.start(t, named.Replace(toolFlow("llmRequest", "")))
	w.tools[0].Description = "Does something else altogether."
	r = w.answer(t, r, "approve")
	if e := mustFail(t, r); e.Code != engine.CodeNondeterministic || len(l.all()) != 0 {
		t.Fatalf("the answer was taken for another tool: %v, done was %q", e, l.all())
	}
}

func TestInvalidApprovalAnswerIsRejected(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{steps: []convo.Message{callMessage(`kept {}`), textMessage("done")}}, l.tool("kept", tool.ApproveAlways))
	r := w.start(t, toolFlow("llmRequest", ""))
	w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
		for _, bad := range []any{"yes", true, map[string]any{"reason": "?"}, nil} {
			run, err := p.Answer(ctx, "run", r.Interrupts[0].ID, bad, "ann")
			if err == nil {
				t.Errorf("%v was taken for an answer", bad)
			}
			if run != nil {
				r, _ = run.Wait(ctx)
			}
		}
		run, err := p.Resume(ctx, "run")
		if err != nil {
			t.Fatal(errors.Join(err, ctx.Err()))
		}
		return run
	})
	if got := l.all(); got != nil {
		t.Errorf("done was %q", got)
	}
}
