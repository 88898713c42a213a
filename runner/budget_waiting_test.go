package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
)

func TestCallInFlightReservesBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		flying int32 // at the same time
	}{
		"of the run":      {strings.Replace(manyCalls, "maxTokens: 1500", "maxTokens: 1050", 1), 1},
		"of the forEach":  {strings.Replace(strings.Replace(manyCalls, "budget: {maxTokens: 1500}\n", "", 1), "    type: forEach\n", "    type: forEach\n    budget: {maxTokens: 1050}\n", 1), 1},
		"for two":         {strings.Replace(manyCalls, "maxTokens: 1500", "maxTokens: 2070", 1), 2},
		"in calls":        {strings.Replace(manyCalls, "maxTokens: 1500", "maxCalls: 3", 1), 3},
		"without a bound": {strings.Replace(manyCalls, "budget: {maxTokens: 1500}\n", "", 1), 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &countingModel{block: make(chan struct{}), begun: make(chan struct{}, 8)}
				w := openMetered(t, m, nil)
				run := weirkit.StartText(t, w, c.text)
				synctest.Wait() // the calls that do not fit wait
				if now := m.now.Load(); now != c.flying || m.calls.Load() != c.flying {
					t.Errorf("%d calls are in flight, want %d", now, c.flying)
				}
				close(m.block)
				r := weirkit.Wait(t, run)
				if most := m.maxParallel.Load(); most > max(c.flying, 2) && c.flying < 8 && !strings.Contains(c.text, "maxCalls") {
					t.Errorf("%d calls were in flight at once; the run %s: %v", most, r.Status, r.Error)
				}
				if made := m.calls.Load(); made <= c.flying && c.flying < 3 {
					t.Errorf("no call that waited was made: %d calls, the run %s: %v", made, r.Status, r.Error)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// interruptedModel blocks its first call until the context ends.
type interruptedModel struct{ calls atomic.Int32 }

func (c *interruptedModel) Generate(ctx context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	if c.calls.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &llm.Response{Message: convo.Message{Text: "Yes."}, Usage: llm.Usage{Input: 10, Output: 5}}, nil
}

func TestInterruptedCallKeepsItsReservation(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]engine.Status{
		"maxTokens: 1050": engine.Failed, // there is no room beside the first
		"maxCalls: 1":     engine.Failed,
		"maxTokens: 2100": engine.Completed,
		"maxCalls: 2":     engine.Completed,
	} {
		t.Run(budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &interruptedModel{}
				w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"meter": m}})
				if err != nil {
					t.Fatal(err)
				}
				r := weirkit.Wait(t, weirkit.StartText(t, w, `
weir: 1
name: cut
context: {model: meter/m, maxOutput: 1000}
budget: {`+budget+`}
nodes:
  ask: {type: llmRequest, in: {message: "Well?"}, timeout: 10s, retry: {attempts: 2, backoff: 1s}}
outputs: {text: "{{ ask.text }}"}
`))
				if r.Status != want || want == engine.Failed && (r.Error.Code != engine.CodeBudget || m.calls.Load() != 1) {
					t.Errorf("the run %s after %d calls: %v", r.Status, m.calls.Load(), r.Error)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// usageModel answers with a usage.
type usageModel struct {
	usage llm.Usage
	asked []int // MaxOutput of each call
}

func (s *usageModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	s.asked = append(s.asked, req.MaxOutput)
	return &llm.Response{Message: convo.Message{Text: "Yes."}, Usage: s.usage}, nil
}

func TestBudgetIsChargedForAllReportedUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget, settings string
		usage            llm.Usage
		calls            int
		most             int // MaxOutput of the first call
	}{
		"tokens from the cache count":           {"maxTokens: 500", "", llm.Usage{Input: 100, Cached: 90, Output: 50}, 3, 500},
		"tokens written to the cache count":     {"maxTokens: 500", "", llm.Usage{Input: 100, Written: 90, Output: 50}, 3, 500},
		"an answer is cut to what is left":      {"maxTokens: 400", ", maxOutput: 1000", llm.Usage{Input: 10, Output: 50}, 6, 400},
		"a shorter one than is left is not":     {"maxTokens: 3950", ", maxOutput: 100", llm.Usage{Input: 10, Output: 3900}, 1, 100},
		"one that is longer is charged whole":   {"maxTokens: 1000", ", maxOutput: 200", llm.Usage{Input: 10, Output: 950}, 1, 200},
		"and what the window would have is not": {"maxTokens: 1000", "", llm.Usage{Input: 10, Output: 5000}, 1, 1000},
	} {
		s := &usageModel{usage: c.usage}
		w, err := weir.Open(weir.Options{
			Providers: map[string]weir.Provider{"meter": s}, Models: llm.NewCatalogue(llm.Model{Name: "meter", Window: 100000}),
		})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(questions(8, "budget: {"+c.budget+"}\n"), "meter/m", "meter/m"+c.settings, 1)
		r := weirkit.Wait(t, weirkit.StartText(t, w, text))
		if len(s.asked) != c.calls || s.asked[0] == 0 || s.asked[0] > c.most {
			t.Errorf("%s: %d calls, for answers of at most %v tokens", name, len(s.asked), s.asked)
		}
		if want := c.calls * (c.usage.Input + c.usage.Output); r.Usage.Tokens() != want || r.Error == nil || r.Error.Code != engine.CodeBudget {
			t.Errorf("%s: %+v is charged: %v", name, r.Usage, r.Error)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
