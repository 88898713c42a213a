package engine_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine"
)

const nearFlow = `weir: 1
name: near
budget: {maxCalls: 10, onLimit: pause}
nodes:
  ask: {type: step, budget: {maxTokens: 50, onLimit: pause}}
`

// applyAndDecide applies an event and what the engine decides.
func applyAndDecide(t *testing.T, r *engine.Run, e engine.Event) {
	t.Helper()
	if err := r.Apply(e); err != nil {
		t.Fatal(err)
	}
	for next := r.Decide(); next != nil; next = r.Decide() {
		if err := r.Apply(next); err != nil {
			t.Fatal(err)
		}
	}
}

// TestABudgetComesNearItsLimitOncePerCrossing spends step by step: the usage of each call, what is increased before it, and which
// budgets come near their limits with it.
func TestABudgetComesNearItsLimitOncePerCrossing(t *testing.T) {
	t.Parallel()
	steps := []struct {
		use  engine.Usage
		want string
	}{
		{engine.Usage{Calls: 1, Input: 20, Output: 19}, "[]"},
		{engine.Usage{Calls: 1, Input: 1}, "[ask]"},               // 40 of 50 tokens
		{engine.Usage{Calls: 5, CostMicros: 75}, "[]"},            // the node's budget stays near
		{engine.Usage{Calls: 1, CostMicros: 1}, "[. .session]"},   // 8 of 10 calls, and 96 of 120 of the session's cost
		{engine.Usage{Calls: 2, Input: 10, CostMicros: 40}, "[]"}, // at the limits
	}
	g := newGolden(t, "near.yaml", nearFlow)
	r := g.run
	applyAndDecide(t, r, &engine.RunStarted{Flow: "near", Allowances: []engine.Account{{
		Path: "session", OnLimit: "fail", Max: engine.Usage{CostMicros: 120}, Used: engine.Usage{Calls: 3, CostMicros: 20},
	}}})
	for i, s := range steps {
		first := r.Events() + 1
		key := fmt.Sprint("ask/model#", i+1)
		applyAndDecide(t, r, &engine.EffectStarted{Key: key, Reserve: &engine.Usage{Calls: 1, Input: 1000}}) // a reservation is no use
		applyAndDecide(t, r, &engine.EffectCompleted{Key: key, Usage: &s.use})
		data, err := r.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		again, err := engine.Restore("r", g.plan, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.TakeNearBudgets(first)); got != s.want {
			t.Errorf("step %d: %s, not %s", i+1, got, s.want)
		}
		if got := fmt.Sprint(again.TakeNearBudgets(0)); got != "[]" {
			t.Errorf("step %d: restored: %s", i+1, got)
		}
		if i+1 < len(steps) { // the next step is done by the restored run as well
			key, use := fmt.Sprint("ask/model#", i+2), steps[i+1].use
			applyAndDecide(t, again, &engine.EffectStarted{Key: key})
			applyAndDecide(t, again, &engine.EffectCompleted{Key: key, Usage: &use})
			if got := fmt.Sprint(again.TakeNearBudgets(0)); got != steps[i+1].want {
				t.Errorf("step %d, restored before: %s, not %s", i+2, got, steps[i+1].want)
			}
		}
	}
}

// TestAnIncreasedBudgetComesNearItsLimitAgain has a person increase the budget of a node that is used.
func TestAnIncreasedBudgetComesNearItsLimitAgain(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "near.yaml", nearFlow)
	r := g.run
	apply := func(e engine.Event) { applyAndDecide(t, r, e) }
	use := func(key string, tokens int) {
		t.Helper()
		apply(&engine.EffectCompleted{Key: key, Usage: &engine.Usage{Input: tokens}})
	}
	apply(&engine.RunStarted{Flow: "near"})
	use("ask/model#1", 50)
	if got := fmt.Sprint(r.TakeNearBudgets(0)); got != "[ask]" {
		t.Error(got)
	}
	apply(&engine.NodeWaiting{Path: "ask", Interrupts: []engine.Interrupt{{ID: "ask:budget#1", Kind: engine.AwaitBudget, Event: "ask"}}})
	apply(&engine.InterruptAnswered{ID: "ask:budget#1", Value: map[string]any{"maxTokens": int64(50)}})
	use("ask/model#2", 29)
	if got := fmt.Sprint(r.TakeNearBudgets(0)); got != "[]" {
		t.Error(got)
	}
	use("ask/model#3", 1) // 80 of 100
	first := r.Events()
	use("ask/model#4", 20)
	if got := fmt.Sprint(r.TakeNearBudgets(first)); got != "[ask]" {
		t.Error(got)
	}
	if got := fmt.Sprint(r.TakeNearBudgets(0)); got != "[]" {
		t.Errorf("taken again: %s", got)
	}
}

func TestEachLimitIsNearAtFourFifths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, used engine.Usage
		near        bool
	}{
		{engine.Usage{}, engine.Usage{Calls: 9, Input: 9, CostMicros: 9}, false},
		{engine.Usage{Calls: 1}, engine.Usage{}, false},
		{engine.Usage{Calls: 1}, engine.Usage{Calls: 1}, true},
		{engine.Usage{Calls: 4}, engine.Usage{Calls: 3}, false},
		{engine.Usage{Calls: 5}, engine.Usage{Calls: 4}, true},
		{engine.Usage{Input: 100}, engine.Usage{Input: 40, Output: 39}, false},
		{engine.Usage{Input: 100}, engine.Usage{Input: 40, Output: 40}, true},
		{engine.Usage{CostMicros: 1000}, engine.Usage{CostMicros: 799}, false},
		{engine.Usage{CostMicros: 1000}, engine.Usage{CostMicros: 800}, true},
		{engine.Usage{CostMicros: 1 << 62}, engine.Usage{CostMicros: 1<<62 - 1<<60}, false},
		{engine.Usage{CostMicros: 1 << 62}, engine.Usage{CostMicros: 1 << 62}, true},
	} {
		if got := engine.Near(c.limit, c.used); got != c.near {
			t.Errorf("%+v of %+v: %v", c.used, c.limit, got)
		}
	}
}
