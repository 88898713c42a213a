package builtin_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/builtin"
)

func outputsOf(t *testing.T, r weir.Result) map[string]any {
	t.Helper()
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	return r.Outputs.Map()
}

func TestLoopConditionReadsTheBodysState(t *testing.T) {
	r := play(t, weir.Options{}, `
weir: 1
name: count
state: {n: {reducer: sum, initial: 0}}
nodes:
  count:
    type: loop
    with:
      until: state.n >= 3 && inputs.step == 1
      body:
        nodes:
          add: {type: transform, in: {by: "{{ inputs.step }}"}, with: {state: {n: inputs.by}}}
        outputs: {i: "{{ inputs.index }}"}
    in: {step: 1}
outputs: {times: "{{ count.iterations }}", i: "{{ count.i }}"}
`, nil, nil)
	if got := outputsOf(t, r); !reflect.DeepEqual(got, map[string]any{"times": int64(3), "i": int64(2)}) {
		t.Errorf("outputs %v", got)
	}
}

func TestLoopCanStopAtItsMaximum(t *testing.T) {
	for _, with := range []string{"until: 'false', max: 4, atMax: stop", "max: 4"} {
		r := play(t, weir.Options{}, `
weir: 1
name: four
nodes:
  spin:
    type: loop
    in: {text: "x"}
    with:
      {`+with+`, body: {nodes: {add: {type: template, in: {t: "{{ inputs.text }}"}, with: {text: "{{ inputs.t }}x"}}}, outputs: {text: "{{ add.text }}"}}}
outputs: {text: "{{ spin.text }}", times: "{{ spin.iterations }}"}
`, nil, nil)
		if got := outputsOf(t, r); !reflect.DeepEqual(got, map[string]any{"text": "xxxxx", "times": int64(4)}) {
			t.Errorf("%s: outputs %v", with, got)
		}
	}
}

const eachFlow = `
weir: 1
name: each
inputs:
  items: {type: any, required: true}
nodes:
  each:
    type: forEach
    in: {items: "{{ run.inputs.items }}"}
    with:
      concurrency: 3
      body:
        nodes:
          check: {type: switch, in: {x: "{{ inputs.item }}"}, with: {cases: [{when: inputs.x > 0, to: good}], default: bad}}
          keep: {type: transform, after: check.good, in: {x: "{{ inputs.item }}"}, with: {expr: inputs.x * 10}}
        outputs: {result: "{{ keep.value }}"}
outputs: {results: "{{ each.results }}", count: "{{ each.count }}"}
`

func TestForEachKeepsItemOrderAndMissingResults(t *testing.T) {
	for name, c := range map[string]struct{ items, want []any }{
		"several":    {[]any{3, -1, 2, 1}, []any{int64(30), nil, int64(20), int64(10)}},
		"none":       {[]any{}, []any{}},
		"one":        {[]any{7}, []any{int64(70)}},
		"only nulls": {[]any{-1}, []any{nil}},
	} {
		r := play(t, weir.Options{}, eachFlow, map[string]any{"items": c.items}, nil)
		got := outputsOf(t, r)
		if name != "only nulls" && !reflect.DeepEqual(got["results"], c.want) || got["count"] != int64(len(c.items)) {
			t.Errorf("%s: outputs %v, expected %v", name, got, c.want)
		}
	}
}

func TestForEachTakesListsOnly(t *testing.T) {
	r := play(t, weir.Options{}, eachFlow, map[string]any{"items": "abc"}, nil)
	if e := mustFail(t, r); e.Node != "each" || !strings.Contains(e.Message, "list") {
		t.Errorf("the error is %+v", e)
	}
}

// TestNullIsTheNameOfAChoice reads the choice null of onItemError as YAML files write it: without quotes it is a
// text, as true is elsewhere. No value is none, and JSON tells both apart.
func TestNullIsTheNameOfAChoice(t *testing.T) {
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) })
	const yaml = "weir: 1\nname: f\nnodes:\n  e: {type: forEach, in: {items: [1]}, with: {onItemError: %s, body: {nodes: {x: {type: template, with: {text: a}}}}}}\n"
	const json = `{"weir": 1, "name": "f", "nodes": {"e": {"type": "forEach", "in": {"items": [1]}, "with": {"onItemError": %s, "body": {"nodes": {"x": {"type": "template", "with": {"text": "a"}}}}}}}}`
	prints := map[string]bool{}
	for _, c := range []struct {
		file, text, value string
		ok                bool
	}{
		{"f.yaml", yaml, "null", true},
		{"f.yaml", yaml, `"null"`, true},
		{"f.json", json, `"null"`, true},
		{"f.json", json, "null", false},
		{"f.yaml", yaml, "", false},
		{"f.yaml", yaml, "~", false},
		{"f.yaml", yaml, "true", false},
	} {
		f, err := w.Parse(c.file, fmt.Appendf(nil, c.text, c.value))
		if (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.file, c.value, err)
		}
		if err == nil {
			prints[f.Fingerprint()] = true
		}
	}
	if len(prints) != 1 {
		t.Error("the forms are different flows")
	}
}

// expensiveType counts how often it runs.
func expensiveType(runs *atomic.Int32) weir.Type {
	return weir.Func("dear", func(weir.Ctx, struct{}) (struct{ Value string }, error) {
		runs.Add(1)
		return struct{ Value string }{"dear"}, nil
	})
}

const cachedFlow = `
weir: 1
name: cached
inputs:
  key: {type: text, required: true}
nodes:
  make: {type: dear}
  keep: {type: cache, in: {value: "{{ make.value }}"}, with: {key: "{{ run.inputs.key }}"}}
outputs: {value: "{{ keep.value }}", hit: "{{ keep.hit }}"}
`

func TestCacheHitDoesNotPullItsInput(t *testing.T) {
	var runs atomic.Int32
	w := open(t, weir.Options{Types: []weir.Type{expensiveType(&runs)}})
	f, err := w.Parse("flow.yaml", []byte(cachedFlow))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key  string
		hit  bool
		runs int32
	}{{"a", false, 1}, {"a", true, 1}, {"b", false, 2}, {"a", true, 2}} {
		run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"key": step.key}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := outputsOf(t, r); got["hit"] != step.hit || got["value"] != "dear" || runs.Load() != step.runs {
			t.Errorf("%+v: outputs %v after %d runs", step, got, runs.Load())
		}
	}
}

func TestUnansweredInputTimesOut(t *testing.T) {
	w := open(t, weir.Options{})
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: late
nodes:
  ask: {type: userInput, with: {prompt: "Anybody?", timeout: 20ms}}
  note: {type: template, in: {e: "{{ ask.error }}"}, with: {text: "{{ inputs.e.code }}"}}
  event: {type: waitEvent, with: {name: paid, timeout: 20ms}, onError: {value: unpaid}}
outputs: {note: "{{ note.text }}", event: "{{ event.value }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	for err == nil && r.Status == engine.Paused {
		// The pause ends by itself, when the questions are given up.
		for _, err := range run.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err = run.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := outputsOf(t, r); got["note"] != builtin.CodeAnswerTimeout || got["event"] != "unpaid" {
		t.Errorf("outputs %v", got)
	}
}

func TestEventIsDeliveredByName(t *testing.T) {
	w := open(t, weir.Options{})
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: order
inputs:
  order: {type: number, required: true}
nodes:
  paid: {type: waitEvent, with: {name: "paid/{{ run.inputs.order }}", schema: {type: integer}}}
outputs: {cents: "{{ paid.value }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"order": 7}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Paused {
		t.Fatalf("the run %v, %v", r.Status, err)
	}
	if err := run.Signal(t.Context(), "paid/7", "much"); err == nil {
		t.Error("an event outside the schema was taken")
	}
	if err := run.Signal(t.Context(), "paid/8", 5); err == nil {
		t.Error("an event of another name was taken")
	}
	if err := run.Signal(t.Context(), "paid/7", 1200); err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := outputsOf(t, r); got["cents"] != int64(1200) {
		t.Errorf("outputs %v", got)
	}
}

func TestFailNodeErrorIsHandledLikeAnyOther(t *testing.T) {
	r := play(t, weir.Options{}, `
weir: 1
name: own
nodes:
  stop: {type: fail, with: {code: no_stock, message: "none of {{ run.flow }}"}}
  note: {type: template, in: {e: "{{ stop.error }}"}, with: {text: "{{ inputs.e.code }}: {{ inputs.e.message }}"}}
outputs: {note: "{{ note.text }}"}
`, nil, nil)
	if got := outputsOf(t, r); got["note"] != "no_stock: none of own" {
		t.Errorf("outputs %v", got)
	}
}

func TestConditionMustBeBoolean(t *testing.T) {
	r := play(t, weir.Options{}, `
weir: 1
name: odd
nodes:
  pick: {type: switch, with: {cases: [{when: "1", to: a}], default: b}}
outputs: {r: "{{ pick.result }}"}
`, nil, nil)
	if e := mustFail(t, r); e.Code != builtin.CodeExpression || !strings.Contains(e.Message, "cases[0].when") {
		t.Errorf("the error is %+v", e)
	}
}

func TestDecisionMayReadInputsStateAndRun(t *testing.T) {
	for expr, want := range map[string]string{"2 > 1": "true", "'false'": "false", "3": "3"} {
		r := play(t, weir.Options{}, `
weir: 1
name: names
nodes:
  pick: {type: decision, with: {expr: "`+expr+`", branches: [true, false, 3]}}
outputs: {r: "{{ pick.result }}"}
`, nil, nil)
		if got := outputsOf(t, r); got["r"] != want {
			t.Errorf("%s: outputs %v", expr, got)
		}
	}
}

func TestAStateBeyondItsLimitFailsTheNodeThatWritesIt(t *testing.T) {
	r := play(t, weir.Options{}, `
weir: 1
name: large
state: {log: {reducer: append, initial: []}}
nodes:
  grow:
    type: loop
    with:
      max: 100
      body:
        nodes:
          w: {type: transform, with: {state: {log: "run.inputs.text", last: "run.inputs.text"}}}
inputs: {text: {type: text, required: true}}
`, map[string]any{"text": strings.Repeat("x", engine.MaxStateBytes/8)}, nil)
	e := mustFail(t, r)
	if e.Code != engine.CodeStateSize || !strings.Contains(e.Message, "the limit is 67108864") || e.Node != "grow#7/w" {
		t.Errorf("%+v", e)
	}
}
