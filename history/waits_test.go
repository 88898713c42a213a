package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

// takes is how long a node of the test runs: long enough to differ from nothing in milliseconds.
const takes = 20 * time.Millisecond

// pause takes the time that a node of the test runs.
func pause(cancelled <-chan struct{}) {
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-cancelled:
	}
}

// slowModel answers after a while.
type slowModel struct{ weirkit.RepeatingModel }

func (m *slowModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	pause(ctx.Done())
	return m.RepeatingModel.Generate(ctx, r, emit)
}

// slots is a flow with one node more than run at once.
func slots() string {
	var b strings.Builder
	b.WriteString("weir: 1\nname: slots\nnodes:\n")
	for i := range 17 {
		fmt.Fprintf(&b, "  n%02d: {type: slow, in: {text: x}}\n", i)
	}
	return b.String()
}

func TestWaitsBeforeTheFirstStartOfANode(t *testing.T) {
	t.Parallel()
	slow := func(ctx weir.Ctx, in recordIn) (recordOut, error) {
		pause(ctx.Done())
		return recordOut(in), nil
	}
	w := weirkit.Open(t, weir.Options{Store: memory.New(), Types: []weir.Type{weir.Func("slow", slow)}, Providers: map[string]weir.Provider{"slow": &slowModel{}}})
	for name, c := range map[string]struct {
		flow string
		want map[string]int // how many nodes have a wait of a kind
		of   string         // a node that has it, if it is always the same
	}{
		"no slot is free": {slots(), map[string]int{"queue": 1}, "n16"},
		"an item waits for its turn": {
			"weir: 1\nname: f\nnodes:\n  each: {type: forEach, in: {items: [a, b, c]}, with: {concurrency: 1, body: {nodes: {one: {type: slow, in: {text: x}}, two: {type: slow, in: {text: \"{{ one.text }}\"}}}}}}\n",
			map[string]int{"queue": 2},
			"each#3/one",
		},
		"another node writes the context": {
			"weir: 1\nname: f\ncontext: {model: slow/m}\nnodes:\n  a: {type: llmRequest, in: {message: x}}\n  b: {type: llmRequest, in: {message: y}}\n",
			map[string]int{"grant": 1},
			"b",
		},
		"nodes follow each other": {
			"weir: 1\nname: f\ncontext: {model: slow/m}\nnodes:\n  a: {type: llmRequest, in: {message: x}}\n  b: {type: llmRequest, after: a, in: {message: y}}\n  c: {type: slow, after: b, in: {text: x}}\n",
			map[string]int{},
			"",
		},
	} {
		run, err := w.Start(t.Context(), weirkit.Parse(t, w, c.flow), weir.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if r := weirkit.Wait(t, run); r.Status != weir.Completed {
			t.Fatalf("%s: the run is %s: %v", name, r.Status, r.Error)
		}
		v, err := w.Inspect(t.Context(), run.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, waits := waitsOf(t, name, v)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: the waits are %v, want %v: %v", name, got, c.want, waits)
		}
		if c.of != "" && !slices.Contains(waits[c.of], "queue") && !slices.Contains(waits[c.of], "grant") {
			t.Errorf("%s: %s waited for nothing: %v", name, c.of, waits)
		}
	}
}

// waitsOf returns how often nodes of a run waited before their start, by kind and by node.
func waitsOf(t *testing.T, name string, v *runner.RunView) (kinds map[string]int, nodes map[string][]string) {
	t.Helper()
	kinds, nodes = map[string]int{}, map[string][]string{}
	for path, phases := range history.PhasesOf(v, 50) {
		for i, p := range phases {
			if p.Kind != "queue" && p.Kind != "grant" {
				continue
			}
			kinds[p.Kind]++
			nodes[path] = append(nodes[path], p.Kind)
			if i != 0 || phases[1].Kind != "run" || p.To != phases[1].From || p.From >= p.To || p.Attempt != 1 {
				t.Errorf("%s: the phases of %s are %+v", name, path, phases)
			}
		}
	}
	return kinds, nodes
}
