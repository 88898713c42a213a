package engine_test

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/engine"
)

const reservingFlow = `
weir: 1
name: reserving
context: {model: p/m}
budget: {maxTokens: 5000}
nodes:
  ask: {type: step, budget: {maxTokens: 2000}}
outputs: {value: "{{ ask.value }}"}
`

func TestSnapshotKeepsReservedAndSpentUsage(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "reserving.yaml", reservingFlow)
	r := g.run
	apply := func(e engine.Event) {
		if err := r.Apply(e); err != nil {
			t.Fatal(err)
		}
		for next := r.Decide(); next != nil; next = r.Decide() {
			if err := r.Apply(next); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(g.decode(`run.started {"flow":"reserving"}`))
	apply(&engine.EffectStarted{Key: "ask/model#1", Reserve: &engine.Usage{Calls: 1, Input: 100, Output: 900, CostMicros: 7, Estimated: 1}})
	apply(&engine.EffectCompleted{Key: "ask/model#1", Usage: &engine.Usage{Calls: 1, Input: 90, Cached: 40, Output: 10, CostMicros: 3}})
	apply(&engine.EffectStarted{Key: "ask/model#2", Reserve: &engine.Usage{Calls: 1, Input: 110, Output: 800, CostMicros: 6, Estimated: 1}})
	data, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := engine.Restore("r", g.plan, data)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Usage{Calls: 2, Input: 200, Cached: 40, Output: 810, CostMicros: 9, Estimated: 1}
	if got := again.CommittedUsage(); got != want {
		t.Errorf("committed %+v, want %+v", got, want)
	}
	if was, is := r.Accounts("ask"), again.Accounts("ask"); len(is) != 2 || !reflect.DeepEqual(was, is) {
		t.Errorf("the budgets were %+v and are %+v", was, is)
	}
	// A call that is made again after a crash is charged for both.
	if err := again.Apply(&engine.EffectStarted{Key: "ask/model#2", UnknownStarts: 1, Reserve: &engine.Usage{Calls: 1, Input: 110, Output: 800}}); err != nil {
		t.Fatal(err)
	}
	if err := again.Apply(&engine.EffectCompleted{Key: "ask/model#2", Usage: &engine.Usage{Calls: 1, Input: 110, Output: 20}}); err != nil {
		t.Fatal(err)
	}
	if got := again.Usage(); got.Calls != 3 || got.Tokens() != 100+910+130 {
		t.Errorf("used %+v", got)
	}
}
