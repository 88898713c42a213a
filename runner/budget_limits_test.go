package runner_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

func TestLostCallIsNotChargedAgainAfterCrash(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"flow", "node"} {
		file := filepath.Join(t.TempDir(), "weir.db")
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &countingModel{block: make(chan struct{}), begun: make(chan struct{}, 8)}
		w := openMetered(t, m, s)
		text := questions(3, "budget: {maxCalls: 2}\n")
		if where == "node" {
			text = `
weir: 1
name: lost
context: {model: meter/m}
nodes:
  rounds:
    type: forEach
    in: {items: "{{ [1, 2, 3] }}"}
    budget: {maxCalls: 2}
    with:
      body:
        nodes: {ask: {type: llmRequest, in: {message: "Well?"}, with: {skipHistory: true}}}
        outputs: {said: "{{ ask.text }}"}
outputs: {said: "{{ rounds.results }}"}
`
		}
		weirkit.StartText(t, w, text)
		<-m.begun
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_ = w.Close(ctx)
		cancel()
		if s, err = sqlite.Open(t.Context(), file, sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		m = &countingModel{}
		run, err := openMetered(t, m, s).Resume(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, run)
		if r.Status != engine.Failed || r.Usage.Calls > 2 || m.calls.Load() != 1 {
			t.Errorf("%s: %s after %d more calls, used %+v of 2 calls: %v", where, r.Status, m.calls.Load(), r.Usage, r.Error)
		}
	}
}

func TestRetryAsksAgainAboutExhaustedBudget(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	w := openMetered(t, m, nil)
	r := weirkit.Wait(t, weirkit.StartText(t, w, questions(2, "budget: {maxCalls: 1, onLimit: pause}\n")))
	run, err := w.Answer(t.Context(), "run", r.Interrupts[0].ID, "stop", "")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Failed {
		t.Fatal(r.Status, r.Error)
	}
	run, err = w.OverrideNode(t.Context(), "run", "retry", "q1", nil, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Paused || len(r.Interrupts) != 1 {
		t.Fatalf("%s %+v %v", r.Status, r.Interrupts, r.Error)
	}
	if run, err = w.Answer(t.Context(), "run", r.Interrupts[0].ID, map[string]any{"maxCalls": int64(1)}, ""); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed || m.calls.Load() != 2 {
		t.Errorf("%s after %d calls: %v", r.Status, m.calls.Load(), r.Error)
	}
}

func TestBudgetIncreaseIsCheckedAgainstBounds(t *testing.T) {
	t.Parallel()
	w := openMetered(t, &countingModel{}, nil)
	r := weirkit.Wait(t, weirkit.StartText(t, w, questions(2, "budget: {maxCalls: 1, maxCost: 1, onLimit: pause}\n")))
	for _, a := range []any{
		map[string]any{},
		"go on", int64(3), nil,
		map[string]any{"maxCalls": int64(-1)},
		map[string]any{"maxCalls": "1"},
		map[string]any{"maxCost": 1e300},
		map[string]any{"maxCalls": int64(1) << 62},
		map[string]any{"maxTokens": int64(1) << 62},
		map[string]any{"maxCalls": 1.5},
		map[string]any{"more": int64(1)},
	} {
		if _, err := w.Answer(t.Context(), "run", r.Interrupts[0].ID, a, ""); err == nil {
			t.Fatalf("%v is taken", a)
		}
	}
}

func TestCallWithUnknownPriceIsRefusedUnderCostBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		price  llm.Price
		budget string
		calls  int32
	}{
		"no price":                {budget: "maxCost: 1", calls: 0},
		"no price, asked to wait": {budget: "maxCost: 1, onLimit: pause", calls: 0},
		"no price, other bounds":  {budget: "maxTokens: 100000", calls: 1},
		"free":                    {price: llm.Price{Free: true}, budget: "maxCost: 1", calls: 1},
	} {
		m := &countingModel{}
		w, err := weir.Open(weir.Options{
			Providers: map[string]weir.Provider{"meter": m},
			Models:    llm.NewCatalogue(llm.Model{Name: "meter", Window: 8000, Price: c.price}),
		})
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, weirkit.StartText(t, w, questions(1, "budget: {"+c.budget+"}\n")))
		if m.calls.Load() != c.calls {
			t.Errorf("%s: %d calls, the run %s: %v", name, m.calls.Load(), r.Status, r.Error)
		}
		if c.calls == 0 && (r.Error == nil || r.Error.Code != engine.CodeModelUnpriced ||
			!strings.Contains(r.Error.Message, "meter/m") || !strings.Contains(r.Error.Hint, "price: {input: ")) {
			t.Errorf("%s: the run %s: %+v", name, r.Status, r.Error)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestBudgetLimitsMaxOutputOfCalls(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), questions(1, "budget: {maxTokens: 100000}\n")))
	if len(m.output) != 1 || m.output[0] == 0 || m.output[0] > 100000 {
		t.Errorf("asked for answers of at most %v tokens (0 is no bound) under a budget", m.output)
	}
	m = &countingModel{}
	text := strings.Replace(questions(1, "budget: {maxTokens: 100000}\n"), "meter/m", "meter/m, budget: {window: 4000, reserve: 400}", 1)
	weirkit.Wait(t, weirkit.StartText(t, openMetered(t, m, nil), text))
	if len(m.output) != 1 || m.output[0] == 0 || m.output[0] > 400 {
		t.Errorf("asked for answers of at most %v tokens with a reserve of 400", m.output)
	}
}
