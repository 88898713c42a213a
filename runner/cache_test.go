package runner_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

type twice struct{ N int64 }

type doubled struct{ N int64 }

func runToEnd(t *testing.T, w *weir.Weir, f *weir.Flow, s weir.Start) weir.Result {
	t.Helper()
	run, err := w.Start(t.Context(), f, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCachedNodeRunsOncePerInputAcrossRuns(t *testing.T) {
	var calls atomic.Int64
	double := weir.Func("double", func(_ weir.Ctx, in twice) (doubled, error) {
		calls.Add(1)
		return doubled{2 * in.N}, nil
	}).Pure()
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{double}})
	f := weirkit.Parse(t, w, `
weir: 1
name: cached
inputs: {n: {type: number, required: true}, other: {type: text}}
nodes:
  d: {type: double, cache: {ttl: 1h}, in: {n: "{{ run.inputs.n }}"}}
  e: {type: double, cache: {key: "{{ inputs.n }}"}, in: {n: "{{ d.n }}"}}
outputs: {n: "{{ e.n }}"}
`)
	for i, c := range []struct {
		in    map[string]any
		want  int64
		calls int64
	}{
		{map[string]any{"n": 3}, 12, 2},
		{map[string]any{"n": 3}, 12, 2},
		{map[string]any{"n": 4}, 16, 4},
		{map[string]any{"n": 3, "other": "x"}, 12, 5}, // d may read it, e's key says it does not
	} {
		r := runToEnd(t, w, f, weir.Start{Inputs: c.in})
		if got, err := weir.Output[int64](r, "n"); err != nil || got != c.want || calls.Load() != c.calls {
			t.Fatalf("run %d: %v, %v after %d calls; want %d after %d", i+1, got, err, calls.Load(), c.want, c.calls)
		}
		if i != 1 {
			continue
		}
		v, err := w.Inspect(t.Context(), r.Run, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range v.Run.Nodes() {
			if !n.Cached {
				t.Errorf("node %s is not marked as cached", n.Path)
			}
		}
	}
}

func TestResumeRefusesAnotherNodeTypeVersion(t *testing.T) {
	s := weirkit.SharedMemory{Store: memory.New()}
	text := `
weir: 1
name: versions
nodes:
  ask: {type: userInput, with: {prompt: go on?}}
  d: {type: double, in: {n: 1}, after: ask}
`
	under := func(version int) *weir.Weir {
		t.Helper()
		w, err := weir.Open(weir.Options{Store: s, Types: []weir.Type{weir.Func("double",
			func(_ weir.Ctx, in twice) (doubled, error) { return doubled(in), nil }).Version(version)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close(context.Background()) })
		return w
	}
	first := under(1)
	r := runToEnd(t, first, weirkit.Parse(t, first, text), weir.Start{ID: "r"})
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	second := under(2)
	_, err := second.Answer(t.Context(), "r", r.Interrupts[0].ID, "yes", "")
	if !errors.Is(err, runner.ErrDependenciesChanged) || !strings.Contains(err.Error(), "double was version 1 and is 2") {
		t.Fatalf("got %v, want a refusal that names the type and both versions", err)
	}
	third := under(1)
	run, err := third.Answer(t.Context(), "r", r.Interrupts[0].ID, "yes", "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestStateIsCheckedAgainstItsSchema(t *testing.T) {
	w := weirkit.Open(t, weir.Options{})
	r := runToEnd(t, w, weirkit.Parse(t, w, `
weir: 1
name: typed
state: {who: {schema: {type: string}}}
nodes: {a: {type: transform, with: {state: {who: "1"}}}}
`), weir.Start{})
	if r.Status != engine.Failed || r.Error.Code != engine.CodeValue || !strings.Contains(r.Error.Message, `"who"`) {
		t.Fatalf("got %+v, want a failure that names the key", r)
	}
}

func TestOptionalOutputMayOmitSkippedNode(t *testing.T) {
	w := weirkit.Open(t, weir.Options{})
	r := runToEnd(t, w, weirkit.Parse(t, w, `
weir: 1
name: either
nodes:
  pick: {type: decision, with: {expr: "'left'", branches: [left, right]}}
  a: {type: template, after: pick.left, with: {text: A}}
  b: {type: template, after: pick.right, with: {text: B}}
outputs:
  a: "{{ has(a.text) ? a.text : 'none' }}"
  b: "{{ has(b.text) ? b.text : 'none' }}"
  c: "{{ b.text }}"
`), weir.Start{})
	want := map[string]any{"a": "A", "b": "none"}
	if got := r.Outputs.Map(); !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestFlowsDoNotShareCacheEntries(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{})
	text := func(name, price string) string {
		return "weir: 1\nname: " + name + "\nnodes: {say: {type: template, in: {x: \"{{ '" + price + "' }}\"}, with: {text: \"price {{ inputs.x }}\"}, cache: {key: prices, shared: true}}}\noutputs: {text: \"{{ say.text }}\"}\n"
	}
	for _, c := range []struct{ name, price string }{{"first", "9"}, {"second", "10"}, {"first", "9"}} {
		f := weirkit.Parse(t, w, text(c.name, c.price))
		r := runToEnd(t, w, f, weir.Start{})
		if got, _ := r.Outputs.Get("text"); got != "price "+c.price {
			t.Errorf("flow %s: %v (%v)", c.name, got, r.Error)
		}
	}
}
