package runner_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/sqlite"
)

func TestRunFailedByBudgetContinuesAfterIncrease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &countingModel{}
	w := openMetered(t, m, s)
	r := weirkit.Wait(t, weirkit.StartText(t, w, questions(4, "budget: {maxCalls: 1, maxTokens: 100000}\n")))
	if r.Status != engine.Failed || r.Error.Code != engine.CodeBudget || r.Error.Budget != engine.RunBudget {
		t.Fatalf("the run %s: %+v", r.Status, r.Error)
	}
	for _, bad := range []map[string]any{
		nil, {"maxCalls": int64(0)}, {"maxCalls": "1"}, {"calls": int64(1)}, {"maxCost": 1.0}, // it does not bound the cost
	} {
		if _, err := w.IncreaseBudget(t.Context(), "run", "q1", bad, "ann"); !errors.Is(err, runner.ErrAnswer) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := w.IncreaseBudget(t.Context(), "run", "q0", map[string]any{"maxCalls": int64(1)}, "ann"); !errors.Is(err, runner.ErrStatus) {
		t.Errorf("a node that has completed: %v", err)
	}
	run, err := w.IncreaseBudget(t.Context(), "run", "q1", map[string]any{"maxCalls": int64(2)}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Failed || r.Error.Node != "q3" || m.calls.Load() != 3 {
		t.Fatalf("with two calls more the run %s after %d: %+v", r.Status, m.calls.Load(), r.Error)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// What was added stays added in every process, and the record says who added it.
	if s, err = sqlite.Open(t.Context(), path, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	w = openMetered(t, m, s)
	if run, err = w.IncreaseBudget(t.Context(), "run", "q3", map[string]any{"maxCalls": int64(1)}, "bob"); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed || m.calls.Load() != 4 {
		t.Fatalf("the run %s after %d calls: %+v", r.Status, m.calls.Load(), r.Error)
	}
	if who := budgetIncreasers(t, w); strings.Join(who, " ") != "ann bob" {
		t.Errorf("added was by %q", who)
	}
}

// budgetIncreasers returns those who added calls to the budget of the run, as its record has it.
func budgetIncreasers(t *testing.T, w *weir.Weir) []string {
	t.Helper()
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	var who []string
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if f, ok := e.(*engine.NodeOverridden); ok && f.Increase != nil && f.Increase.More.Calls > 0 {
				who = append(who, f.By)
			}
		}
	}
	return who
}

func TestIncreaseGoesToTheExhaustedBudget(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	w := openMetered(t, m, nil)
	flow := strings.Replace(questions(3, "budget: {maxCalls: 2}\n"),
		"q2: {type: llmRequest,", "q2: {type: llmRequest, budget: {maxCalls: 5},", 1)
	r := weirkit.Wait(t, weirkit.StartText(t, w, flow))
	if r.Status != engine.Failed || r.Error.Node != "q2" || r.Error.Budget != engine.RunBudget {
		t.Fatalf("the run %s: %+v", r.Status, r.Error)
	}
	run, err := w.IncreaseBudget(t.Context(), "run", "q2", map[string]any{"maxCalls": int64(1)}, "")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed || m.calls.Load() != 3 {
		t.Errorf("the run %s after %d calls: %+v", r.Status, m.calls.Load(), r.Error)
	}
}

func TestBudgetCanBeIncreasedAfterRefusal(t *testing.T) {
	t.Parallel()
	m := &countingModel{}
	w := openMetered(t, m, nil)
	flow := strings.Replace(questions(1, ""), "q0: {type: llmRequest,", "q0: {type: llmRequest, budget: {maxTokens: 10, onLimit: pause},", 1)
	r := weirkit.Wait(t, weirkit.StartText(t, w, flow))
	if r.Status != engine.Paused {
		t.Fatalf("the run %s: %+v", r.Status, r.Error)
	}
	if _, err := w.IncreaseBudget(t.Context(), "run", "q0", map[string]any{"maxTokens": int64(9000)}, ""); !errors.Is(err, runner.ErrStatus) {
		t.Errorf("a node that asks is to be answered: %v", err)
	}
	run, err := w.Answer(t.Context(), "run", r.Interrupts[0].ID, "stop", "")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Failed || r.Error.Budget != "q0" {
		t.Fatalf("the run %s: %+v", r.Status, r.Error)
	}
	if run, err = w.IncreaseBudget(t.Context(), "run", "q0", map[string]any{"maxTokens": int64(9000)}, ""); err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Errorf("the run %s: %+v", r.Status, r.Error)
	}
}
