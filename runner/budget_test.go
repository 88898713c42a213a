package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// countingModel answers every call and reports that it took 100 tokens in and 50 out.
type countingModel struct {
	calls       atomic.Int32
	maxParallel atomic.Int32 // at the same time
	now         atomic.Int32
	mu          sync.Mutex
	output      []int // MaxOutput of each
	// block, where set, keeps calls until it is closed; begun reports each.
	block, begun chan struct{}
}

func (m *countingModel) Generate(ctx context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	n := m.now.Add(1)
	defer m.now.Add(-1)
	m.calls.Add(1)
	for {
		most := m.maxParallel.Load()
		if n <= most || m.maxParallel.CompareAndSwap(most, n) {
			break
		}
	}
	m.mu.Lock()
	m.output = append(m.output, req.MaxOutput)
	m.mu.Unlock()
	if m.block != nil {
		m.begun <- struct{}{}
		select {
		case <-m.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &llm.Response{
		Message: convo.Message{Role: convo.Assistant, Text: "Yes."},
		Usage:   llm.Usage{Input: 100, Output: 50},
	}, nil
}

func openMetered(t *testing.T, m *countingModel, s weir.Store) *weir.Weir {
	t.Helper()
	w, err := weir.Open(weir.Options{
		Store: s, Providers: map[string]weir.Provider{"meter": m},
		Models: llm.NewCatalogue(llm.Model{Name: "meter", Window: 8000, Price: llm.Price{Input: 1, Output: 10}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	return w
}

// questions returns a flow of n model calls, one after another.
func questions(n int, budget string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir: 1\nname: budgets\ncontext: {model: meter/m}\n%snodes:\n", budget)
	for i := range n {
		after := ""
		if i > 0 {
			after = fmt.Sprintf("after: q%d, ", i-1)
		}
		fmt.Fprintf(&b, "  q%d: {type: llmRequest, %sin: {message: \"Well?\"}, with: {skipHistory: true}}\n", i, after)
	}
	fmt.Fprintf(&b, "outputs: {last: \"{{ q%d.text }}\"}\n", n-1)
	return b.String()
}

func TestRunBudgetIsNeverOverspent(t *testing.T) {
	t.Parallel()
	for budget, calls := range map[string]int32{
		"maxCalls: 3":                       3,
		"maxTokens: 500":                    3, // of 150; a fourth would have no answer worth it
		"maxCost: 0.0015":                   2, // of 0.0006
		"maxCalls: 5, maxTokens: 100000":    5,
		"maxCalls: 20, maxCost: 1":          8,
		"maxTokens: 3, onLimit: fail":       0,
		"maxCost: 0.0000001, maxCalls: 100": 0,
	} {
		m := &countingModel{}
		r := weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), questions(8, "budget: {"+budget+"}\n")))
		if got := m.calls.Load(); got != calls {
			t.Errorf("%s: %d calls, want %d (%v)", budget, got, calls, r.Error)
		}
		if calls == 8 {
			continue
		}
		if r.Status != engine.Failed || r.Error.Code != engine.CodeBudget {
			t.Errorf("%s: %s %v", budget, r.Status, r.Error)
		}
		if r.Usage.CostMicros != int64(calls)*600 || r.Usage.Tokens() != int(calls)*150 {
			t.Errorf("%s: used %+v", budget, r.Usage)
		}
	}
}

func TestAnswerIsBoundedByRemainingBudget(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), questions(1, "budget: {maxTokens: 400}\n")))
	if len(m.output) != 1 || m.output[0] < 64 || m.output[0] >= 400 {
		t.Errorf("asked for answers of at most %v tokens", m.output)
	}
}

func TestPausingBudgetContinuesAfterIncrease(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &countingModel{}
	w := openMetered(t, m, s)
	r := weirkit.Wait(t, weirkit.StartText(t, w, questions(4, "budget: {maxCalls: 1, onLimit: pause}\n")))
	if r.Status != engine.Paused || len(r.Interrupts) != 1 || r.Interrupts[0].Kind != engine.AwaitBudget {
		t.Fatalf("%s %+v", r.Status, r.Interrupts)
	}
	if p := r.Interrupts[0].Prompt; !strings.Contains(p, "1 of 1 calls") || !strings.Contains(p, `such as {"maxCalls": 10}, or`) {
		t.Errorf("asked %q", r.Interrupts[0].Prompt)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another process adds two, and then nothing.
	if s, err = sqlite.Open(t.Context(), file, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	w = openMetered(t, m, s)
	run, err := w.Answer(t.Context(), "run", r.Interrupts[0].ID, map[string]any{"maxCalls": int64(2)}, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Paused || m.calls.Load() != 3 {
		t.Fatalf("%s after %d calls: %v", r.Status, m.calls.Load(), r.Error)
	}
	if run, err = w.Answer(t.Context(), "run", r.Interrupts[0].ID, "stop", ""); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Failed || r.Error.Code != engine.CodeBudget || m.calls.Load() != 3 {
		t.Errorf("%s %v after %d calls", r.Status, r.Error, m.calls.Load())
	}
}

func TestBranchingBudgetUsesLimitPort(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	r := weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), `
weir: 1
name: branch
context: {model: meter/m}
nodes:
  rounds:
    type: forEach
    in: {items: "{{ [1, 2, 3, 4] }}"}
    budget: {maxCalls: 2, onLimit: branch}
    with:
      body:
        nodes:
          ask: {type: llmRequest, in: {message: "Well?"}, with: {skipHistory: true}}
          cheap: {type: template, after: ask.limit, with: {text: "no money"}}
          either: {type: merge, in: {value: ["{{ ask.text }}", "{{ cheap.text }}"]}}
        outputs: {said: "{{ either.value }}"}
outputs: {said: "{{ rounds.results }}"}
`))
	if r.Status != engine.Completed || m.calls.Load() != 2 {
		t.Fatalf("%s after %d calls: %v", r.Status, m.calls.Load(), r.Error)
	}
	if got := fmt.Sprint(r.Outputs); strings.Count(got, "Yes.") != 2 || strings.Count(got, "no money") != 2 {
		t.Errorf("outputs %v", got)
	}
}

func TestParallelCallsWaitForReservations(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	// A call reserves its input and 1,000 tokens: two fit at once.
	r := weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), `
weir: 1
name: parallel
context: {model: meter/m, maxOutput: 1000}
budget: {maxTokens: 2200}
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
`))
	if r.Status != engine.Completed || m.calls.Load() != 8 {
		t.Fatalf("%s after %d calls: %v", r.Status, m.calls.Load(), r.Error)
	}
	if r.Usage.Tokens() > 2200 {
		t.Errorf("used %d tokens", r.Usage.Tokens())
	}
}

func TestCallWithUnknownOutcomeIsChargedItsReservation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &countingModel{block: make(chan struct{}), begun: make(chan struct{}, 8)}
	w := openMetered(t, m, s)
	text := strings.Replace(questions(1, "budget: {maxTokens: 2500}\n"), "meter/m", "meter/m, maxOutput: 1000", 1)
	weirkit.StartText(t, w, text)
	<-m.begun
	// The process ends while the call is out.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_ = w.Close(ctx)
	if s, err = sqlite.Open(t.Context(), file, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	m = &countingModel{}
	w = openMetered(t, m, s)
	run, err := w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if r.Status != engine.Completed || r.Usage.Calls != 2 || r.Usage.Output != 1050 {
		t.Errorf("%s, used %+v; want the lost call's 1,000 reserved and the second's 50 tokens of output", r.Status, r.Usage)
	}
}
