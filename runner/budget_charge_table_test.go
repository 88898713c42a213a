package runner_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// callOutcome is what a model does with one try of a call, and what is done to the run
// meanwhile.
type callOutcome struct {
	text          string    // is streamed
	usage         llm.Usage // as reported
	fails         *llm.Error
	hangs         bool // until the context ends
	ignoresCancel bool // and does not notice that
	cancel        bool // the run is cancelled when the try waits
	crash         bool // the process dies then
}

// billedModel is a model that does one scene after another.
type billedModel struct {
	outcomes []callOutcome
	calls    atomic.Int32
	out      chan callOutcome // a try that waits
	over     chan struct{}
}

func (b *billedModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	n := int(b.calls.Add(1))
	s := b.outcomes[min(n, len(b.outcomes))-1]
	if s.text != "" {
		emit(llm.Chunk{Text: s.text})
	}
	if s.hangs {
		b.out <- s
		if s.ignoresCancel {
			<-b.over
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.fails != nil {
		return nil, s.fails
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: s.text}, Usage: s.usage}, nil
}

// dyingMemory is a store that the process no longer reaches once it has died.
type dyingMemory struct {
	*memory.Store
	dead atomic.Bool
}

func (d *dyingMemory) Append(ctx context.Context, as []store.Append) []error {
	if d.dead.Load() {
		return slices.Repeat([]error{weirkit.ErrDied}, len(as))
	}
	return d.Store.Append(ctx, as)
}

func (d *dyingMemory) Close() error { return nil }

// charged is what a run is expected to be charged.
type charged struct {
	calls, estimated int
	tokens           int  // exactly; -1 is an estimate
	crashed          bool // the first call is charged only where a budget reserved for it
}

func (s *charged) matches(u engine.Usage) bool {
	if u.Calls != s.calls || u.Estimated != s.estimated {
		return false
	}
	return u.Tokens() == s.tokens || s.tokens < 0 && u.Input >= 4
}

func TestChargeForEachCallOutcomeUnderEachBudget(t *testing.T) {
	t.Parallel()
	lost := &llm.Error{Code: "model_unavailable", Message: "the stream broke", Retry: true, OutcomeUnknown: true}
	answer := callOutcome{text: "Yes.", usage: llm.Usage{Input: 100, Output: 50}}
	broken := callOutcome{text: "Ye", fails: lost}
	outcomes := map[string]struct {
		scenes []callOutcome
		want   charged
		status engine.Status
	}{
		"complete":                       {[]callOutcome{answer}, charged{1, 0, 150, false}, engine.Completed},
		"no usage":                       {[]callOutcome{{text: "Yes."}}, charged{1, 1, -1, false}, engine.Completed},
		"usage of the input alone":       {[]callOutcome{{text: "Yes.", usage: llm.Usage{Input: 100}}}, charged{1, 1, -1, false}, engine.Completed},
		"a stream broken once":           {[]callOutcome{broken, answer}, charged{2, 1, -1, false}, engine.Completed},
		"a stream broken three times":    {[]callOutcome{broken, broken, broken, answer}, charged{4, 3, -1, false}, engine.Completed},
		"a stream that always breaks":    {[]callOutcome{broken}, charged{4, 4, -1, false}, engine.Failed},
		"a connection lost in silence":   {[]callOutcome{{fails: lost}, answer}, charged{2, 1, -1, false}, engine.Completed},
		"overloaded, then an answer":     {[]callOutcome{{fails: &llm.Error{Code: "model_overloaded", Retry: true}}, answer}, charged{1, 0, 150, false}, engine.Completed},
		"refused":                        {[]callOutcome{{fails: &llm.Error{Code: "model_invalid_request"}}}, charged{}, engine.Failed},
		"too long":                       {[]callOutcome{{fails: &llm.Error{Code: "model_context_length"}}}, charged{}, engine.Failed},
		"timed out in silence":           {[]callOutcome{{hangs: true}}, charged{1, 1, -1, false}, engine.Failed},
		"timed out in the answer":        {[]callOutcome{{hangs: true, text: "Ye"}}, charged{1, 1, -1, false}, engine.Failed},
		"timed out and deaf":             {[]callOutcome{{hangs: true, text: "Ye", ignoresCancel: true}}, charged{1, 1, -1, false}, engine.Failed},
		"cancelled before an answer":     {[]callOutcome{{hangs: true, cancel: true}}, charged{1, 1, -1, false}, engine.Cancelled},
		"cancelled in the answer":        {[]callOutcome{{hangs: true, cancel: true, text: "Ye"}}, charged{1, 1, -1, false}, engine.Cancelled},
		"cancelled and deaf":             {[]callOutcome{{hangs: true, cancel: true, ignoresCancel: true}}, charged{1, 1, -1, false}, engine.Cancelled},
		"cancelled after a broken one":   {[]callOutcome{broken, {hangs: true, cancel: true}}, charged{2, 2, -1, false}, engine.Cancelled},
		"a crash in the call, and again": {[]callOutcome{{hangs: true, crash: true}, answer}, charged{2, 1, -1, true}, engine.Completed},
	}
	for name, o := range outcomes {
		for _, budget := range []string{"none", "node", "run", "session"} {
			t.Run(name+", budget: "+budget, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := &billedModel{outcomes: o.scenes, out: make(chan callOutcome), over: make(chan struct{})}
					r, row := m.play(t, budget)
					want := o.want
					if want.crashed && budget == "none" { // nothing of the call is in the journal
						want = charged{1, 0, 150, false}
					}
					if r.Status != o.status || !want.matches(r.Usage) {
						t.Errorf("the run %s (%v) and is charged %+v, want %+v", r.Status, r.Error, r.Usage, want)
					}
					if row.Head.Usage != r.Usage {
						t.Errorf("the list of runs has %+v, the run %+v", row.Head.Usage, r.Usage)
					}
				})
			})
		}
	}
}

const billedFlow = `
weir: 1
name: billed
context: {model: p/m, maxOutput: 100}
inputs: {message: {type: text}}
nodes:
  ask: {type: llmRequest, in: {message: "Well?"}}
outputs: {text: "{{ ask.text }}"}
`

// play runs the flow under a budget until it ends.
func (b *billedModel) play(t *testing.T, budget string) (weir.Result, store.Run) {
	t.Helper()
	text := billedFlow
	const roomy = "budget: {maxTokens: 100000, maxCalls: 100}"
	switch budget {
	case "node":
		text = strings.Replace(text, `"Well?"}}`, `"Well?"}, `+roomy+`}`, 1)
	case "run":
		text = strings.Replace(text, "nodes:", roomy+"\nnodes:", 1)
	case "session":
		text = strings.Replace(text, "nodes:", "session: {"+roomy+"}\nnodes:", 1)
	}
	d := &dyingMemory{Store: memory.New()}
	w, f := b.open(t, d, text)
	id := startBilled(t, w, f, budget == "session")
	select {
	case s := <-b.out:
		switch {
		case s.cancel:
			if _, err := w.Cancel(t.Context(), id, "somebody", "enough"); err != nil {
				t.Fatal(err)
			}
		case s.crash:
			d.dead.Store(true)
			_ = w.Close(t.Context())
			w, _ = b.open(t, &dyingMemory{Store: d.Store}, text)
			<-time.After(time.Minute) // the lease expires
			if _, err := w.Resume(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	case <-time.After(time.Minute):
	}
	r := ended(t, w, id)
	close(b.over)
	row, err := w.Runs(t.Context(), store.Filter{})
	if err != nil || len(row) != 1 {
		t.Fatal(row, err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return r, row[0]
}

func (b *billedModel) open(t *testing.T, s weir.Store, text string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	w, err := weir.Open(weir.Options{
		Store: s, Providers: map[string]weir.Provider{"p": b}, Timeouts: map[string]llm.Timeouts{"p": {First: time.Hour, Idle: time.Hour, Total: time.Hour}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

// startBilled starts the flow as a run, or as the round of a session, and returns the run's id.
func startBilled(t *testing.T, w *weir.Weir, f *weir.Flow, session bool) string {
	t.Helper()
	if !session {
		run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
		if err != nil {
			t.Fatal(err)
		}
		return run.ID
	}
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada"})
	if err == nil {
		_, err = s.Send(t.Context(), "Well?", weir.SendOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		rows, err := w.Runs(t.Context(), store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 {
			return rows[0].ID
		}
		<-time.After(time.Millisecond)
	}
}

// ended waits until a run has ended.
func ended(t *testing.T, w *weir.Weir, id string) weir.Result {
	t.Helper()
	for x := w.ActiveRun(id); x != nil; x = w.ActiveRun(id) {
		r, err := x.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Status.Ended() {
			return r
		}
	}
	rows, err := w.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return weir.Result{Run: id, Status: rows[0].Head.Status, Usage: rows[0].Head.Usage, Error: rows[0].Head.Error}
}
