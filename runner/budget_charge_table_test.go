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
	"github.com/weir-run/weir/tool"
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
	stop          bool // the process is closed then
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

func (d *dyingMemory) Release(ctx context.Context, l store.Lease) error {
	if d.dead.Load() {
		return weirkit.ErrDied
	}
	return d.Store.Release(ctx, l)
}

func (d *dyingMemory) Close() error { return nil }

// charged is what a run is expected to be charged.
type charged struct {
	calls, estimated int
	tokens           int // exactly; -1 is an estimate
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
		"complete":                              {[]callOutcome{answer}, charged{1, 0, 150}, engine.Completed},
		"no usage":                              {[]callOutcome{{text: "Yes."}}, charged{1, 1, -1}, engine.Completed},
		"usage of the input alone":              {[]callOutcome{{text: "Yes.", usage: llm.Usage{Input: 100}}}, charged{1, 1, -1}, engine.Completed},
		"a stream broken once":                  {[]callOutcome{broken, answer}, charged{2, 1, -1}, engine.Completed},
		"a stream broken three times":           {[]callOutcome{broken, broken, broken, answer}, charged{4, 3, -1}, engine.Completed},
		"a stream that always breaks":           {[]callOutcome{broken}, charged{4, 4, -1}, engine.Failed},
		"a connection lost in silence":          {[]callOutcome{{fails: lost}, answer}, charged{2, 1, -1}, engine.Completed},
		"overloaded, then an answer":            {[]callOutcome{{fails: &llm.Error{Code: "model_overloaded", Retry: true}}, answer}, charged{1, 0, 150}, engine.Completed},
		"refused":                               {[]callOutcome{{fails: &llm.Error{Code: "model_invalid_request"}}}, charged{}, engine.Failed},
		"too long":                              {[]callOutcome{{fails: &llm.Error{Code: "model_context_length"}}}, charged{}, engine.Failed},
		"timed out in silence":                  {[]callOutcome{{hangs: true}}, charged{1, 1, -1}, engine.Failed},
		"timed out in the answer":               {[]callOutcome{{hangs: true, text: "Ye"}}, charged{1, 1, -1}, engine.Failed},
		"timed out and deaf":                    {[]callOutcome{{hangs: true, text: "Ye", ignoresCancel: true}}, charged{1, 1, -1}, engine.Failed},
		"cancelled before an answer":            {[]callOutcome{{hangs: true, cancel: true}}, charged{1, 1, -1}, engine.Cancelled},
		"cancelled in the answer":               {[]callOutcome{{hangs: true, cancel: true, text: "Ye"}}, charged{1, 1, -1}, engine.Cancelled},
		"cancelled and deaf":                    {[]callOutcome{{hangs: true, cancel: true, ignoresCancel: true}}, charged{1, 1, -1}, engine.Cancelled},
		"cancelled after a broken one":          {[]callOutcome{broken, {hangs: true, cancel: true}}, charged{2, 2, -1}, engine.Cancelled},
		"stopped in the answer, and again":      {[]callOutcome{{hangs: true, stop: true, text: "Ye"}, answer}, charged{2, 1, -1}, engine.Completed},
		"a crash in each of two calls":          {[]callOutcome{{hangs: true, crash: true}, {hangs: true, crash: true}, answer}, charged{3, 2, -1}, engine.Completed},
		"a crash, then stopped":                 {[]callOutcome{{hangs: true, crash: true}, {hangs: true, stop: true, text: "Ye"}, answer}, charged{3, 2, -1}, engine.Completed},
		"a crash in the answer, then cancelled": {[]callOutcome{{hangs: true, crash: true, text: "Ye"}, {hangs: true, cancel: true}}, charged{2, 2, -1}, engine.Cancelled},
		"a crash in the call, and again":        {[]callOutcome{{hangs: true, crash: true}, answer}, charged{2, 1, -1}, engine.Completed},
	}
	for name, o := range outcomes {
		for _, budget := range []string{"none", "node", "run", "session"} {
			t.Run(name+", budget: "+budget, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := &billedModel{outcomes: o.scenes, out: make(chan callOutcome), over: make(chan struct{})}
					r, row := m.play(t, budget)
					if r.Status != o.status || !o.want.matches(r.Usage) {
						t.Errorf("the run %s (%v) and is charged %+v, want %+v", r.Status, r.Error, r.Usage, o.want)
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
	for waits := true; waits; {
		select {
		case s := <-b.out:
			switch {
			case s.cancel:
				if _, err := w.Cancel(t.Context(), id, "somebody", "enough"); err != nil {
					t.Fatal(err)
				}
			case s.crash, s.stop:
				d.dead.Store(s.crash)
				_ = w.Close(t.Context())
				d = &dyingMemory{Store: d.Store}
				w, _ = b.open(t, d, text)
				<-time.After(time.Minute) // the lease of a crashed process expires
				if _, err := w.Resume(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		case <-time.After(time.Minute):
			waits = false
		}
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

// TestCrashChargesOnlyCallsThatMayHaveBeenInFlight has the process die in each effect of an agent that calls a tool: of the
// model calls, only the one that was in flight is charged twice.
func TestCrashChargesOnlyCallsThatMayHaveBeenInFlight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crash string
		want  charged
	}{
		"the first model call":  {"model 1", charged{3, 1, -1}},
		"the tool":              {"tool", charged{2, 0, 300}},
		"the second model call": {"model 2", charged{3, 1, -1}},
		"no effect":             {"", charged{2, 0, 300}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if r := playAgent(t, c.crash); r.Status != engine.Completed || !c.want.matches(r.Usage) {
					t.Errorf("the run %s (%v) and is charged %+v, want %+v", r.Status, r.Error, r.Usage, c.want)
				}
			})
		})
	}
}

// playAgent runs an agent whose process dies once, in the named effect.
func playAgent(t *testing.T, crash string) weir.Result {
	t.Helper()
	const text = "weir: 1\nname: agent\ncontext: {model: p/m, maxOutput: 100}\nnodes:\n  ask: {type: agent, in: {message: Well?, tools: [look]}}\n"
	entered := make(chan struct{})
	var died atomic.Bool
	hang := func(ctx context.Context, effect string) error {
		if effect != crash || died.Load() {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	look := &weir.Tool{Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}, ReadOnly: true, Call: func(ctx context.Context, _ tool.Call) (string, error) {
		return "seen", hang(ctx, "tool")
	}}
	model := generateFunc(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		m := convo.Message{Role: convo.Assistant, Text: "Yes."}
		name := "model 2"
		if last := req.Messages[len(req.Messages)-1]; last.Role == convo.User {
			name, m = "model 1", convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: "look", Arguments: "{}"}}}
		}
		return &llm.Response{Message: m, Usage: llm.Usage{Input: 100, Output: 50}}, hang(ctx, name)
	})
	d := &dyingMemory{Store: memory.New()}
	open := func() (*weir.Weir, *weir.Flow) {
		w, err := weir.Open(weir.Options{Store: d, Providers: map[string]weir.Provider{"p": model}, Tools: []*weir.Tool{look}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.Parse("flow.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return w, f
	}
	w, f := open()
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if crash != "" {
		<-entered
		died.Store(true)
		d.dead.Store(true)
		_ = w.Close(t.Context())
		d = &dyingMemory{Store: d.Store}
		w, _ = open()
		<-time.After(time.Minute) // the lease expires
		if run, err = w.Resume(t.Context(), "run"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return r
}

// generateFunc is a provider that is a function.
type generateFunc func(ctx context.Context, req *llm.Request) (*llm.Response, error)

// Generate implements llm.Provider.
func (f generateFunc) Generate(ctx context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	return f(ctx, req)
}
