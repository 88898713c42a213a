package weir_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

const reviewFlow = `
weir: 1
name: invoice-review
context: {model: script/demo, system: You review invoices.}
inputs:
  amount: {type: number, required: true}
nodes:
  keep:
    type: transform
    with: {expr: run.inputs.amount, state: {amount: run.inputs.amount}}
  check:
    type: decision
    after: keep
    with: {expr: "state.amount > 1000 ? 'high' : 'low'", branches: [high, low]}
  ask:
    type: userInput
    after: check.high
    with: {prompt: "Approve {{ state.amount }} EUR?", schema: {type: string, enum: [approve, reject]}}
  reply:
    type: llmRequest
    after: check.low
    in: {message: "Write one line that confirms {{ state.amount }} EUR."}
outputs: {decision: "{{ ask.text }}", note: "{{ reply.text }}"}
`

func TestReviewPausesAndContinuesWithAnswer(t *testing.T) {
	ctx := t.Context()
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	f := weirkit.Parse(t, w, reviewFlow)

	run, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"amount": 2000}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != engine.Paused || len(r.Interrupts) != 1 || r.Interrupts[0].Prompt != "Approve 2000 EUR?" {
		t.Fatalf("got %+v, want a pause with the question", r)
	}
	if err := run.Answer(ctx, r.Interrupts[0].ID, "maybe"); err == nil {
		t.Fatal("an answer outside the schema was taken")
	}
	if err := run.Answer(ctx, r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r, err = run.Wait(ctx); err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v; want completed", r, err)
	}
	if got, err := weir.Output[string](r, "decision"); err != nil || got != "approve" {
		t.Fatalf("decision = %q, %v", got, err)
	}
	if _, ok := r.Outputs.Get("note"); ok {
		t.Fatal("the branch not taken has an output")
	}
}

func TestReviewOfSmallSumAsksTheModel(t *testing.T) {
	ctx := t.Context()
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("Confirmed.")}})
	run, err := w.Start(ctx, weirkit.Parse(t, w, reviewFlow), weir.Start{Inputs: map[string]any{"amount": 10.5}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got, err := weir.Output[string](r, "note"); err != nil || got != "Confirmed." {
		t.Fatalf("note = %q, %v", got, err)
	}
	if r.Usage.Calls != 1 {
		t.Errorf("usage = %+v, want one call", r.Usage)
	}
}

func TestOriginIsValidatedAndRecorded(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	for _, bad := range []string{
		"schedule", "schedule:", "file:", "webhook", "Cron", "a b", ":x", "x:", "file:a\nb", "file:\xff",
		"file:" + strings.Repeat("x", 200),
	} {
		var e *weir.Error
		_, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"message": "hello"}, Origin: bad})
		if !errors.As(err, &e) || e.Code != engine.CodeInput || e.Hint == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"", "cli", "schedule:nightly", "file:inbox/a b.pdf", "webhook:orders:paid", "my-kind", "test"} {
		run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"message": "hello"}, Origin: good})
		if err != nil {
			t.Errorf("%q: %v", good, err)
			continue
		}
		weirkit.Wait(t, run)
		v, err := w.Inspect(t.Context(), run.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.Runs(t.Context(), store.Filter{Limit: 1})
		if good == "" {
			good = "go"
		}
		if err != nil || v.Run.Start.Origin != good || rows[0].Origin != good {
			t.Errorf("%q: the journal has %q, the row %+v %v", good, v.Run.Start.Origin, rows[0].Origin, err)
		}
	}
	s := weirkit.OpenSession(t, w, f)
	if _, err := s.Send(t.Context(), "hello", weir.SendOptions{Origin: "webhook"}); err == nil {
		t.Error("a message of a webhook that has no name")
	}
	state := weirkit.SendAndWait(t, s, "hello", weir.SendOptions{Origin: "webhook:orders"})
	if v, err := w.Inspect(t.Context(), state.Run, 0); err != nil || v.Run.Start.Origin != "webhook:orders" {
		t.Errorf("%+v %v", v.Run.Start, err)
	}
	run, err := w.Rerun(t.Context(), state.Run, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.Wait(t, run)
	if v, err := w.Inspect(t.Context(), run.ID, 0); err != nil || v.Run.Start.Origin != "rerun" {
		t.Errorf("%+v %v", v.Run.Start, err)
	}
}

func TestRerunReplacesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{})
	f := weirkit.Parse(t, w, `{weir: 1, name: sums, inputs: {a: {type: number, default: 1}, b: {type: number, default: 2}}, state: {x: {initial: 10}, y: {initial: 20}},
		nodes: {first: {type: transform, with: {expr: "[run.inputs.a, run.inputs.b, state.x, state.y]"}}, second: {type: transform, with: {expr: run.user}}},
		outputs: {values: "{{ first.value }}", user: "{{ second.value }}"}}`)
	run, err := w.Start(t.Context(), f, weir.Start{User: "ada", Inputs: map[string]any{"a": 3}, State: map[string]any{"x": 11}})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.Wait(t, run)
	for _, c := range []struct {
		name         string
		start        weir.Start
		values, user string
	}{
		{"nothing", weir.Start{}, "[3 2 11 20]", "ada"},
		{"an input", weir.Start{Inputs: map[string]any{"b": 4}}, "[3 4 11 20]", "ada"},
		{"a value of the state", weir.Start{State: map[string]any{"y": 21}}, "[3 2 11 21]", "ada"},
		{"the user and the origin", weir.Start{User: "bob", Origin: "file:a.csv"}, "[3 2 11 20]", "bob"},
		{"the model", weir.Start{Model: "other/m"}, "[3 2 11 20]", "ada"},
		{"the targets", weir.Start{Targets: []string{"second"}}, "<nil>", "ada"},
	} {
		again, err := w.Rerun(t.Context(), run.ID, c.start)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := weirkit.Wait(t, again)
		out := r.Outputs.Map()
		if got := fmt.Sprint(out["values"]); got != c.values || out["user"] != c.user {
			t.Errorf("%s: %s for %v, expected %s for %s", c.name, got, out["user"], c.values, c.user)
		}
		if v, err := w.Inspect(t.Context(), again.ID, 0); err != nil || v.Run.Start.Origin != cmp.Or(c.start.Origin, "rerun") {
			t.Errorf("%s: origin %s %v", c.name, v.Run.Start.Origin, err)
		} else if s, _ := runner.MainSettings(v.Run.Start); s.Provider+s.Model != strings.ReplaceAll(c.start.Model, "/", "") {
			t.Errorf("%s: model %s of %s", c.name, s.Model, s.Provider)
		}
	}
	for _, bad := range []weir.Start{{Targets: []string{"third"}}, {Origin: "file"}, {User: " ada"}, {Breaks: []string{"third"}}, {Inputs: map[string]any{"c": 1}}} {
		if _, err := w.Rerun(t.Context(), run.ID, bad); err == nil {
			t.Errorf("a rerun with %+v was started", bad)
		}
	}
}

// jsonKeys returns the keys that a struct is written with.
func jsonKeys(v any) []string {
	var keys []string
	t := reflect.TypeOf(v)
	for field := range t.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestDefinitionHasTheKeysOfAFlowFile(t *testing.T) {
	want := slices.DeleteFunc(flow.FlowKeys(), func(k string) bool { return k == "weir" }) // Define writes it
	slices.Sort(want)
	if got := jsonKeys(weir.Definition{}); !slices.Equal(got, want) {
		t.Errorf("Definition has %v, flow files have %v", got, want)
	}
	want = slices.Sorted(slices.Values(flow.NodeKeys()))
	if got := jsonKeys(weir.NodeSpec{}); !slices.Equal(got, want) {
		t.Errorf("NodeSpec has %v, nodes of flow files have %v", got, want)
	}
}

func TestEveryDefinitionKeyReachesTheFlow(t *testing.T) {
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(t.Context()) }()
	f, err := w.Define(weir.Definition{
		Name: "all", Timeout: "10m", Description: "What it is.", Budget: map[string]any{"maxCalls": 3}, Context: map[string]any{"model": "script/demo"},
		Nodes: map[string]weir.NodeSpec{"a": {
			Type: "llmRequest", In: map[string]any{"message": "x"}, Description: "One.", Budget: map[string]any{"maxTokens": 5},
			InterruptBefore: true, InterruptAfter: true,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := f.Node("a")
	if f.Description != "What it is." || f.Spend.MaxCalls != 3 || f.Timeout != 10*time.Minute || n.Description != "One." || n.Spend.MaxTokens != 5 || !n.InterruptBefore || !n.InterruptAfter {
		t.Errorf("flow %+v, node %+v", f, n)
	}
}

// TestDurationsOfADefinitionAreThoseOfAFlowFile writes a duration wherever a flow has one. JSON would make 50 million seconds of it.
func TestDurationsOfADefinitionAreThoseOfAFlowFile(t *testing.T) {
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(t.Context()) }()
	type object = map[string]any
	define := func(d any) *weir.Flow {
		f, err := w.Define(weir.Definition{
			Name: "timed", Timeout: d, Context: object{"callTimeout": object{"idle": d}}, Session: object{"ttl": d},
			Nodes: map[string]weir.NodeSpec{
				"a": {
					Type: "loop", Timeout: d, Retry: object{"attempts": 2, "backoff": d}, Isolation: "fork",
					With: object{"max": 2, "body": object{"nodes": map[string]weir.NodeSpec{"b": {
						Type: "transform", In: object{"text": d}, With: object{"expr": "inputs.text"}, Timeout: d, Cache: object{"ttl": d},
					}}}},
				},
				"c": {Type: "wait", With: object{"for": d}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if got, want := define(50*time.Millisecond), define("50ms"); got.Fingerprint() != want.Fingerprint() || got.Timeout != 50*time.Millisecond {
		t.Errorf("%+v, want %+v", got, want)
	}
}
