package runner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// localOf opens a runner over the store of a tree, with other options.
func (t *tree) localOf(change func(o *runner.Options)) *runner.Local {
	t.tb.Helper()
	o := runner.Options{Store: t.store, Poll: 5 * time.Millisecond, Flow: func(_ context.Context, fingerprint string) (*runner.Program, error) {
		if p := t.programs[fingerprint]; p != nil {
			return p, nil
		}
		return nil, store.ErrNotFound
	}}
	change(&o)
	l := runner.NewLocal(o)
	t.tb.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

const waitsLong = `
nodes:
  wait: {type: wait, with: {for: 1h}}
outputs: {v: "{{ wait.value }}"}
`

func TestATreeThatWaitsForAFarTimerComesToRest(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(tr *tree) *runner.Program{
		"one run": func(tr *tree) *runner.Program { return tr.add("a", waitsLong) },
		"a parent and its child": func(tr *tree) *runner.Program {
			tr.add("a", waitsLong)
			return tr.add("b", "nodes: {s: {type: sub, with: {flow: a}}}\noutputs: {v: \"{{ s.out }}\"}\n")
		},
		"a parent with a nearer timer": func(tr *tree) *runner.Program {
			tr.add("a", waitsLong)
			return tr.add("b", "nodes: {s: {type: sub, with: {flow: a}}, near: {type: wait, with: {for: 30m}}}\noutputs: {v: \"{{ s.out }}\"}\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRest(t, name, use)
		})
	}
}

// checkRest executes the run of a program twice and checks when its next timer fires, and that no process owns a run of
// the tree meanwhile.
func checkRest(t *testing.T, name string, use func(tr *tree) *runner.Program) {
	t.Helper()
	tr := newTree(t)
	p := use(tr)
	want := time.Now().Add(time.Hour)
	if name == "a parent with a nearer timer" {
		want = time.Now().Add(30 * time.Minute)
	}
	l := tr.localOf(func(o *runner.Options) { o.Rest = time.Second })
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second execution has nothing to do
		r := tr.wait(x)
		due, ok := x.RestsUntil()
		if r.Status != engine.Running || !ok || due.Sub(want).Abs() > time.Minute {
			t.Fatalf("the run is %s and rests until %v (%t), want %v", r.Status, due, ok, want)
		}
		for _, row := range tr.runs() {
			if row.Owner != "" {
				t.Errorf("run %s is owned by %s", row.ID, row.Owner)
			}
		}
		if x, err = l.Resume(t.Context(), p, "r"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANearTimerIsWaitedFor(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.add("a", "nodes: {wait: {type: wait, with: {for: 0.05}}}\noutputs: {v: \"{{ wait.value }}\"}\n")
	p := tr.add("b", "nodes: {s: {type: sub, with: {flow: a}}}\noutputs: {v: \"{{ s.out }}\"}\n")
	x, err := tr.localOf(func(o *runner.Options) { o.Rest = time.Minute }).Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r := tr.wait(x); r.Status != engine.Completed {
		t.Fatalf("the run is %s", r.Status)
	}
	if _, ok := x.RestsUntil(); ok {
		t.Error("a completed run rests")
	}
}

// countType is a node type that counts its executions.
func countType(n *int) node.Type {
	return &funcType{
		spec: flow.TypeSpec{Name: "count", Version: 1, Ports: flow.Ports{Out: []flow.Port{{Name: "out", Type: flow.TypeAny}}}},
		run: func(c *node.Ctx) error {
			*n++
			c.Output("out", int64(*n))
			return nil
		},
	}
}

func TestARecordingRunnerExecutesNothing(t *testing.T) {
	t.Parallel()
	executed := 0
	tr := newTree(t, countType(&executed))
	p := tr.add("a", "nodes:\n  a: {type: count}\n  ask: {type: userInput, with: {prompt: \"?\"}, after: a}\noutputs: {v: \"{{ ask.text }}\"}\n")
	record := tr.localOf(func(o *runner.Options) { o.RecordOnly, o.Runner = true, "other" })
	x, err := record.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r := tr.wait(x); r.Status != engine.Running || executed != 0 {
		t.Fatalf("the run is %s after %d executions", r.Status, executed)
	}
	if row := tr.runs()[0]; row.Owner != "" || row.Commits != 1 {
		t.Fatalf("the run has the owner %q and %d commits", row.Owner, row.Commits)
	}
	execute := tr.localOf(func(o *runner.Options) { o.Runner = "other" })
	if x, err = execute.Resume(t.Context(), p, "r"); err != nil {
		t.Fatal(err)
	}
	if r := tr.wait(x); r.Status != engine.Paused || executed != 1 {
		t.Fatalf("the run is %s after %d executions", r.Status, executed)
	}
	if x, err = record.Do(t.Context(), p, "r", runner.Answer("ask:ask#1", "yes", "me")); err != nil {
		t.Fatal(err)
	}
	tr.wait(x)
	if row := tr.runs()[0]; row.Owner != "" || row.Head.Status != engine.Running {
		t.Fatalf("after the answer the run is %s and has the owner %q", row.Head.Status, row.Owner)
	}
	if x, err = execute.Resume(t.Context(), p, "r"); err != nil {
		t.Fatal(err)
	}
	if r := tr.wait(x); r.Status != engine.Completed || executed != 1 {
		t.Fatalf("the run is %s after %d executions", r.Status, executed)
	}
}

func TestARunnerLeavesTheRunsOfOtherRunnersAlone(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	p := tr.add("a", "nodes: {ask: {type: userInput, with: {prompt: \"?\"}}}\noutputs: {v: \"{{ ask.text }}\"}\n")
	locals := map[string]*runner.Local{
		"":      tr.local,
		"other": tr.localOf(func(o *runner.Options) { o.Runner = "other" }),
	}
	for owner, l := range locals {
		x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "run-" + owner})
		if err != nil {
			t.Fatal(err)
		}
		tr.wait(x)
	}
	for owner := range locals {
		for name, l := range locals {
			id := "run-" + owner
			for what, try := range map[string]func() error{
				"resume": func() error { _, err := l.Resume(t.Context(), p, id); return err },
				"answer": func() error { _, err := l.Do(t.Context(), p, id, runner.Answer("ask:ask#2", "x", "")); return err },
				"check":  func() error { return l.CheckRunner(t.Context(), id) },
			} {
				err := try()
				if x := l.Held(id); x != nil { // it is released before another one looks
					<-x.Done()
				}
				if refused := errors.Is(err, runner.ErrOtherRunner); refused != (owner != name) {
					t.Errorf("%s of a run of %q by %q: %v", what, owner, name, err)
				}
			}
			if _, err := l.Inspect(t.Context(), p, id, 0); err != nil {
				t.Errorf("reading a run of %q by %q: %v", owner, name, err)
			}
		}
	}
}
