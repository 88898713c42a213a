package runner_test

import (
	"context"
	"errors"
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
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// innerToolModel is a model that calls the tool "inner" and repeats the result, and
// that answers "in" where it is asked inside it. Each call takes 10 tokens.
type innerToolModel struct {
	calls  atomic.Int64
	inside chan struct{}                   // sent to where a call inside begins; nil is not
	block  func(ctx context.Context) error // what a call inside waits for; nil is nothing
}

func (h *innerToolModel) Generate(ctx context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	h.calls.Add(1)
	last := req.Messages[len(req.Messages)-1]
	m := convo.Message{Role: convo.Assistant, Text: "told: " + last.Text}
	switch {
	case strings.HasPrefix(last.Text, "In"):
		if h.inside != nil {
			h.inside <- struct{}{}
		}
		if h.block != nil {
			if err := h.block(ctx); err != nil {
				return nil, err
			}
		}
		m.Text = "in"
	case last.Role == convo.User:
		m = convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: "inner", Arguments: "{}"}}}
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 5, Output: 5}}, nil
}

const innerFlow = `
weir: 1
name: inner
description: Helps.
context: {model: m/m}
nodes:
  one: {type: llmRequest, in: {message: "In one."}}
  two: {type: llmRequest, after: one, in: {message: "In two."}}
outputs: {user: "{{ run.user }}"}
`

// outerFlow returns one that has the tool called; more stands before its nodes, with
// in the node.
func outerFlow(more, with string) string {
	return "weir: 1\nname: outer\ncontext: {model: m/m}\n" + more + `
nodes:
  pick: {type: tools}
  say: {type: llmRequest, in: {message: "Go.", tools: "{{ pick.tools }}"}` + with + `}
outputs: {text: "{{ say.text }}"}
`
}

func openWithInnerTool(t *testing.T, h *innerToolModel, s weir.Store) *weir.Weir {
	t.Helper()
	parsing := weirkit.Open(t, weir.Options{})
	return weirkit.Open(t, weir.Options{
		Store: s, Providers: map[string]weir.Provider{"m": h}, Flows: []weir.FlowTool{{Flow: weirkit.Parse(t, parsing, innerFlow)}},
	})
}

// waitForChildren returns the run that the tool call of a run began.
func waitForChildren(t *testing.T, w *weir.Weir, n int) []store.Run {
	t.Helper()
	runs, err := w.Runs(t.Context(), store.Filter{Parent: "run"})
	if err != nil || len(runs) != n {
		t.Fatalf("%d runs below the caller, want %d: %v", len(runs), n, err)
	}
	return runs
}

func TestFlowToolUsesCallerBudgetAndUser(t *testing.T) {
	t.Parallel()
	h := &innerToolModel{}
	w := openWithInnerTool(t, h, nil)
	f := weirkit.Parse(t, w, outerFlow("budget: {maxCalls: 4}", ""))
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run", User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if text, _ := weir.Output[string](r, "text"); r.Status != engine.Completed || text != "told: ada" {
		t.Errorf("%s %v: %q", r.Status, r.Error, text)
	}
	if r.Usage.Calls != 4 || r.Usage.Tokens() != 40 || h.calls.Load() != 4 {
		t.Errorf("%d calls were made, and the run's usage is %+v", h.calls.Load(), r.Usage)
	}
	waitForChildren(t, w, 1)
}

func TestExhaustedBudgetInFlowToolFailsTheCall(t *testing.T) {
	t.Parallel()
	t.Run("fail", func(t *testing.T) {
		_, _, r := usedUpInside(t, "fail", engine.Failed)
		if r.Status != engine.Failed || r.Error.Code != engine.CodeBudget {
			t.Errorf("the caller is %s: %v", r.Status, r.Error)
		}
	})
	t.Run("pause", func(t *testing.T) {
		h, run, r := usedUpInside(t, "pause", engine.Paused)
		if r.Status != engine.Paused || r.Interrupts[0].Kind != engine.AwaitBudget {
			t.Fatalf("the caller is %s: %v", r.Status, r.Error)
		}
		if err := run.Answer(t.Context(), r.Interrupts[0].ID, map[string]any{"maxCalls": 2}); err != nil {
			t.Fatal(err)
		}
		r = weirkit.Wait(t, run)
		if text, _ := weir.Output[string](r, "text"); text != "told: " || h.calls.Load() != 4 || r.Usage.Calls != 4 {
			t.Errorf("%s: the model received %q", r.Status, text)
		}
	})
}

// usedUpInside runs a flow whose two calls are used up by the flow it calls, whose run then has a status.
func usedUpInside(t *testing.T, limit string, inside engine.Status) (*innerToolModel, *weir.Run, weir.Result) {
	t.Helper()
	h := &innerToolModel{}
	w := openWithInnerTool(t, h, nil)
	run := weirkit.StartText(t, w, outerFlow("budget: {maxCalls: 2, onLimit: "+limit+"}", ""))
	r := weirkit.Wait(t, run)
	below := waitForChildren(t, w, 1)[0]
	if below.Head.Status != inside || inside == engine.Failed && below.Head.Error.Code != engine.CodeBudget {
		t.Errorf("the tool's run is %s: %v", below.Head.Status, below.Head.Error)
	}
	if h.calls.Load() != 2 || r.Usage.Calls != 2 {
		t.Errorf("%d calls were made and %d counted, of 2", h.calls.Load(), r.Usage.Calls)
	}
	return h, run, r
}

func TestFlowToolIsCancelledBeforeItsCallerIsAcknowledged(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	h := &innerToolModel{inside: make(chan struct{}, 2), block: func(context.Context) error { <-gate; return nil }}
	s := memory.New()
	w := openWithInnerTool(t, h, s)
	run := weirkit.StartText(t, w, outerFlow("", ""))
	<-h.inside
	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	below := waitForChildren(t, w, 1)[0]
	if !cancelRequested(t, s, below.ID) {
		t.Error("the caller's cancellation was acknowledged before the tool's run had it")
	}
	close(gate)
	r := weirkit.Wait(t, run)
	if r.Status != engine.Cancelled || h.calls.Load() != 2 || r.Usage.Calls != 2 {
		t.Errorf("%s, %d calls made, %d counted", r.Status, h.calls.Load(), r.Usage.Calls)
	}
	if is := waitForChildren(t, w, 1)[0].Head.Status; is != engine.Cancelled {
		t.Errorf("the tool's run is %s", is)
	}
	if _, err := w.Cancel(t.Context(), "run", "", ""); err != nil {
		t.Errorf("cancelled once more: %v", err)
	}
}

func TestFlowToolContinuesInAnotherProcessOnCallerBudget(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	db := func() weir.Store {
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := &innerToolModel{inside: make(chan struct{}, 2)}
	dies := errors.New("the process stops")
	h.block = func(ctx context.Context) error {
		if h.calls.Load() < 3 { // the second call inside is cut off
			return nil
		}
		<-ctx.Done()
		return dies
	}
	w := openWithInnerTool(t, h, db())
	weirkit.StartText(t, w, outerFlow("budget: {maxCalls: 5}", ""))
	<-h.inside
	<-h.inside
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := &innerToolModel{}
	second := openWithInnerTool(t, again, db())
	run, err := second.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	// The cost of the call that was cut off is unknown: it is charged.
	if r.Status != engine.Completed || again.calls.Load() != 2 || r.Usage.Calls != 5 {
		t.Errorf("%s %v, %d calls more, %d counted", r.Status, r.Error, again.calls.Load(), r.Usage.Calls)
	}
	waitForChildren(t, second, 1)
}

func TestFlowToolIsCancelledAfterCallerProcessDied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	db := func() weir.Store {
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := &innerToolModel{inside: make(chan struct{}, 2), block: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	w := openWithInnerTool(t, h, db())
	weirkit.StartText(t, w, outerFlow("", ""))
	<-h.inside
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, s := &innerToolModel{}, db()
	second := openWithInnerTool(t, again, s)
	run, err := second.Cancel(t.Context(), "run", "ada", "enough")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Cancelled || again.calls.Load() != 0 {
		t.Errorf("%s after %d calls", r.Status, again.calls.Load())
	}
	below := waitForChildren(t, second, 1)[0]
	if !cancelRequested(t, s, below.ID) {
		t.Errorf("the tool's run is %s", below.Head.Status)
	}
}

func TestFlowToolIsCancelledAfterCallerFailedInDyingProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	db := func() weir.Store {
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := &innerToolModel{inside: make(chan struct{}, 2), block: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	w := openWithInnerTool(t, h, db())
	weirkit.StartText(t, w, strings.Replace(outerFlow("", ""), "nodes:", "nodes:\n  ask: {type: userInput, with: {prompt: \"Well?\"}}", 1))
	<-h.inside
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, s := &innerToolModel{}, db()
	failWhileDying(t, s, "ask")
	second := openWithInnerTool(t, again, s)
	run, err := second.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Failed || again.calls.Load() != 0 {
		t.Errorf("%s after %d calls", r.Status, again.calls.Load())
	}
	below := waitForChildren(t, second, 1)[0]
	if x := second.ActiveRun(below.ID); x != nil {
		weirkit.Wait(t, x)
	}
	if below = waitForChildren(t, second, 1)[0]; below.Head.Status != engine.Cancelled || below.Owner != "" {
		t.Errorf("the tool's run is %s, owned by %q", below.Head.Status, below.Owner)
	}
}

// failWhileDying has a process fail the run because of a node that waited, and die
// before it has handled what else is in progress.
func failWhileDying(t *testing.T, s weir.Store, path string) {
	t.Helper()
	row, err := s.Run(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "dead", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a := store.Append{
		Commit: engine.Commit{Run: "run", Seq: row.Commits + 1, First: row.Events + 1, At: time.Now().UnixMilli(), Events: []engine.Event{
			&engine.InterruptAnswered{ID: path + ":ask#1", Value: "x"}, &engine.NodeResumed{Path: path},
			&engine.NodeFailed{Path: path, Error: &engine.Error{Code: engine.CodeNodeFailed, Message: "no", Node: path}}, &engine.NodeErrored{Path: path},
		}},
		Fence: l.Fence, Head: store.Head{Status: engine.Running},
	}
	if err := errors.Join(s.Append(t.Context(), []store.Append{a})[0], s.Release(t.Context(), l)); err != nil {
		t.Fatal(err)
	}
}

func TestTimedOutNodeCancelsItsFlowToolAndRetryStartsAnother(t *testing.T) {
	t.Parallel()
	h := &innerToolModel{}
	h.block = func(ctx context.Context) error {
		if h.calls.Load() > 2 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	w := openWithInnerTool(t, h, nil)
	run := weirkit.StartText(t, w, outerFlow("", ", timeout: 200ms, retry: {attempts: 2, backoff: 1ms}"))
	r := weirkit.Wait(t, run)
	if r.Status != engine.Completed {
		t.Fatalf("%s: %v", r.Status, r.Error)
	}
	if first := w.ActiveRun(waitForChildren(t, w, 2)[1].ID); first != nil { // what is in flight has a moment to end
		weirkit.Wait(t, first)
	}
	runs := waitForChildren(t, w, 2)
	if runs[1].Head.Status != engine.Cancelled || runs[0].Head.Status != engine.Completed {
		t.Errorf("the first is %s, the second %s", runs[1].Head.Status, runs[0].Head.Status)
	}
	if sum := runs[0].Head.Usage.Calls + runs[1].Head.Usage.Calls; r.Usage.Calls != sum+2 {
		t.Errorf("%d calls are counted; the flows made %d and their caller 2", r.Usage.Calls, sum)
	}
}

// cancelRequested reports whether a cancellation is in a run's journal.
func cancelRequested(t *testing.T, s weir.Store, run string) bool {
	t.Helper()
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if _, is := e.(*engine.CancelRequested); is {
				return true
			}
		}
	}
	return false
}
