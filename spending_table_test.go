package weir_test

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
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// scene is what a model does with one try of a call, and what is done to the run
// meanwhile.
type scene struct {
	text   string    // is streamed
	usage  llm.Usage // as reported
	fails  *llm.Error
	hangs  bool // until the context ends
	deaf   bool // and does not notice that
	cancel bool // the run is cancelled when the try waits
	crash  bool // the process dies then
}

// billed is a model that does one scene after another.
type billed struct {
	scenes []scene
	calls  atomic.Int32
	out    chan scene // a try that waits
	over   chan struct{}
}

func (b *billed) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	n := int(b.calls.Add(1))
	s := b.scenes[min(n, len(b.scenes))-1]
	if s.text != "" {
		emit(llm.Chunk{Text: s.text})
	}
	if s.hangs {
		b.out <- s
		if s.deaf {
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

// deadly is a store that the process no longer reaches once it has died.
type deadly struct {
	*memory.Store
	dead atomic.Bool
}

func (d *deadly) Append(ctx context.Context, as []store.Append) []error {
	if d.dead.Load() {
		return slices.Repeat([]error{errProcessDied}, len(as))
	}
	return d.Store.Append(ctx, as)
}

func (d *deadly) Close() error { return nil }

// spent is what a run is expected to be charged.
type spent struct {
	calls, estimated int
	tokens           int  // exactly; -1 is an estimate
	crashed          bool // the first call is charged only where a budget reserved for it
}

func (s *spent) is(u engine.Usage) bool {
	if u.Calls != s.calls || u.Estimated != s.estimated {
		return false
	}
	return u.Tokens() == s.tokens || s.tokens < 0 && u.Input >= 4
}

func TestWhatIsChargedForEachOutcomeOfACallUnderEachBudget(t *testing.T) {
	t.Parallel()
	lost := &llm.Error{Code: "model_unavailable", Message: "the stream broke", Retry: true, Unknown: true}
	answer := scene{text: "Yes.", usage: llm.Usage{Input: 100, Output: 50}}
	broken := scene{text: "Ye", fails: lost}
	outcomes := map[string]struct {
		scenes []scene
		want   spent
		status engine.Status
	}{
		"complete":                       {[]scene{answer}, spent{1, 0, 150, false}, engine.Completed},
		"no usage":                       {[]scene{{text: "Yes."}}, spent{1, 1, -1, false}, engine.Completed},
		"usage of the input alone":       {[]scene{{text: "Yes.", usage: llm.Usage{Input: 100}}}, spent{1, 1, -1, false}, engine.Completed},
		"a stream broken once":           {[]scene{broken, answer}, spent{2, 1, -1, false}, engine.Completed},
		"a stream broken three times":    {[]scene{broken, broken, broken, answer}, spent{4, 3, -1, false}, engine.Completed},
		"a stream that always breaks":    {[]scene{broken}, spent{4, 4, -1, false}, engine.Failed},
		"a connection lost in silence":   {[]scene{{fails: lost}, answer}, spent{2, 1, -1, false}, engine.Completed},
		"overloaded, then an answer":     {[]scene{{fails: &llm.Error{Code: "model_overloaded", Retry: true}}, answer}, spent{1, 0, 150, false}, engine.Completed},
		"refused":                        {[]scene{{fails: &llm.Error{Code: "model_invalid_request"}}}, spent{}, engine.Failed},
		"too long":                       {[]scene{{fails: &llm.Error{Code: "model_context_length"}}}, spent{}, engine.Failed},
		"timed out in silence":           {[]scene{{hangs: true}}, spent{1, 1, -1, false}, engine.Failed},
		"timed out in the answer":        {[]scene{{hangs: true, text: "Ye"}}, spent{1, 1, -1, false}, engine.Failed},
		"timed out and deaf":             {[]scene{{hangs: true, text: "Ye", deaf: true}}, spent{1, 1, -1, false}, engine.Failed},
		"cancelled before an answer":     {[]scene{{hangs: true, cancel: true}}, spent{1, 1, -1, false}, engine.Cancelled},
		"cancelled in the answer":        {[]scene{{hangs: true, cancel: true, text: "Ye"}}, spent{1, 1, -1, false}, engine.Cancelled},
		"cancelled and deaf":             {[]scene{{hangs: true, cancel: true, deaf: true}}, spent{1, 1, -1, false}, engine.Cancelled},
		"cancelled after a broken one":   {[]scene{broken, {hangs: true, cancel: true}}, spent{2, 2, -1, false}, engine.Cancelled},
		"a crash in the call, and again": {[]scene{{hangs: true, crash: true}, answer}, spent{2, 1, -1, true}, engine.Completed},
	}
	for name, o := range outcomes {
		for _, budget := range []string{"none", "node", "run", "session"} {
			t.Run(name+", budget: "+budget, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := &billed{scenes: o.scenes, out: make(chan scene), over: make(chan struct{})}
					r, row := m.play(t, budget)
					want := o.want
					if want.crashed && budget == "none" { // nothing of the call is in the journal
						want = spent{1, 0, 150, false}
					}
					if r.Status != o.status || !want.is(r.Usage) {
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
func (b *billed) play(t *testing.T, budget string) (weir.Result, store.Run) {
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
	d := &deadly{Store: memory.New()}
	w, f := b.open(t, d, text)
	id := begun(t, w, f, budget == "session")
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
			w, _ = b.open(t, &deadly{Store: d.Store}, text)
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

func (b *billed) open(t *testing.T, s weir.Store, text string) (*weir.Weir, *weir.Flow) {
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

// begun starts the flow as a run, or as the round of a session, and returns the run's id.
func begun(t *testing.T, w *weir.Weir, f *weir.Flow, session bool) string {
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
	for x := w.Driven(id); x != nil; x = w.Driven(id) {
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
