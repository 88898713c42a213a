package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

// askingFlows are flows whose parallel calls ask for one budget of two calls: the file of the root, and those that it
// uses. In each, six calls are to be made.
func askingFlows() map[string]map[string]string {
	one := "weir: 1\nname: one\ncontext: {model: meter/m}\nnodes:\n  ask: {type: llmRequest, in: {message: \"Well?\"}, with: {skipHistory: true}}\noutputs: {said: \"{{ ask.text }}\"}\n"
	many := func(n int, budget, around, node string) string {
		return fmt.Sprintf(`weir: 1
name: many
context: {model: meter/m}
%s
nodes:
  many:
    type: forEach
    in: {items: "{{ lists.range(%d) }}"}
%s
    with:
      concurrency: 6
      body:
        nodes:
          ask: %s
        outputs: {said: "{{ ask.%s }}"}
outputs: {said: "{{ many.results }}"}
`, budget, n, around, node, map[bool]string{true: "text", false: "said"}[node[7] == 'l'])
	}
	const (
		pause = "budget: {maxCalls: 2, onLimit: pause}"
		call  = `{type: llmRequest, in: {message: "Well?"}, with: {skipHistory: true}}`
	)
	return map[string]map[string]string{
		"of the run":                     {"root.yaml": many(6, pause, "", call)},
		"of the node":                    {"root.yaml": many(6, "", "    "+pause, call)},
		"of the run, in children":        {"root.yaml": many(6, pause, "", "{type: flow, with: {flow: one.yaml}}"), "one.yaml": one},
		"of a node, in children":         {"root.yaml": many(6, "", "    "+pause, "{type: flow, with: {flow: one.yaml}}"), "one.yaml": one},
		"of the run, in grandchildren":   {"root.yaml": many(2, pause, "", "{type: flow, with: {flow: mid.yaml}}"), "mid.yaml": many(3, "", "", "{type: flow, with: {flow: one.yaml}}"), "one.yaml": one},
		"of the child, in grandchildren": {"root.yaml": many(1, "", "", "{type: flow, with: {flow: mid.yaml}}"), "mid.yaml": many(6, pause, "", "{type: flow, with: {flow: one.yaml}}"), "one.yaml": one},
	}
}

// An increase given to one of several calls that wait for a budget settles the questions of all.
func TestAnIncreaseSettlesTheQuestionsOfAllCallsThatWait(t *testing.T) {
	t.Parallel()
	for name, files := range askingFlows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFlows(t, dir, files)
			m := &countingModel{}
			w, f := openAsking(t, m, dir)
			run, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
			if err != nil {
				t.Fatal(err)
			}
			r := askedOf(t, run, 4)
			if err := w.Close(context.WithoutCancel(t.Context())); err != nil || m.calls.Load() != 2 {
				t.Fatalf("%d calls, %v", m.calls.Load(), err)
			}

			// Another process adds too little, and then enough.
			w, _ = openAsking(t, m, dir)
			r = askedOf(t, answerOneOf(t, w, r, 1), 3)
			if m.calls.Load() != 3 {
				t.Fatalf("%d calls with one more", m.calls.Load())
			}
			r = weirkit.Wait(t, answerOneOf(t, w, r, 3))
			if r.Status != engine.Completed || m.calls.Load() != 6 {
				t.Fatalf("the run %s after %d calls, asks %+v: %v", r.Status, m.calls.Load(), r.Interrupts, r.Error)
			}
		})
	}
}

func writeFlows(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// openAsking opens the database in a folder, and the flow there.
func openAsking(t *testing.T, m *countingModel, dir string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	w := openMetered(t, m, weirkit.OpenSQLite(t, filepath.Join(dir, "weir.db")))
	f, err := w.Load(filepath.Join(dir, "root.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

// answerOneOf adds calls to the budget that a run asks about, in answer to one of its questions.
func answerOneOf(t *testing.T, w *weir.Weir, r weir.Result, calls int64) *weir.Run {
	t.Helper()
	run, err := w.Answer(t.Context(), r.Run, r.Interrupts[len(r.Interrupts)/2].ID, map[string]any{"maxCalls": calls}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// askedOf waits until the run pauses with so many questions about a budget.
func askedOf(t *testing.T, run *weir.Run, n int) weir.Result {
	t.Helper()
	r := weirkit.Wait(t, run)
	if r.Status != engine.Paused || len(r.Interrupts) != n {
		t.Fatalf("the run %s with %d questions, want %d: %+v %v", r.Status, len(r.Interrupts), n, r.Interrupts, r.Error)
	}
	for _, i := range r.Interrupts {
		if i.Kind != engine.AwaitBudget {
			t.Fatalf("asks %+v", i)
		}
	}
	return r
}
