package runner_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// openTwo opens one file twice, as two processes would.
func openTwo(t *testing.T) (ws [2]*weir.Weir, s weir.Store) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.db")
	for i := range ws {
		var err error
		if s, err = sqlite.Open(t.Context(), file, sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		ws[i] = weirkit.OpenForkWeir(t, s, &weirkit.EchoModel{})
	}
	return ws, s
}

func TestForkContinuesInAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"loop", "branches", "agent", "child"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ws, s := openTwo(t)
			run, err := ws[0].Start(t.Context(), weirkit.LoadForkFlow(t, ws[0], name), weir.Start{ID: "original"})
			if err != nil {
				t.Fatal(err)
			}
			want := resultText(t, ws[0], weirkit.AnswerAll(t, ws[0], run))
			row, err := s.Run(t.Context(), "original")
			if err != nil {
				t.Fatal(err)
			}
			base := "original"
			for at := int64(1); at < row.Events; at += 3 {
				id := fmt.Sprint("fork", at)
				fork, _, err := ws[0].Fork(t.Context(), base, weir.ForkOptions{ID: id, At: at})
				if err != nil {
					t.Fatal(err)
				}
				if got := resultText(t, ws[1], resumeInOther(t, ws, fork)); got != want {
					t.Fatalf("forked at %d of %d:\n%s\nthe original:\n%s", at, row.Events, got, want)
				}
				base = id // a fork of a fork of a fork
			}
		})
	}
}

// resumeInOther has two processes take turns with a run.
func resumeInOther(t *testing.T, ws [2]*weir.Weir, run *weir.Run) weir.Result {
	t.Helper()
	for n := 1; n < 100; n++ {
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != engine.Paused {
			return r
		}
		i := r.Interrupts[0]
		if run, err = ws[n%2].Answer(t.Context(), r.Run, i.ID, "re: "+i.Prompt, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it never ends")
	return weir.Result{}
}

func TestForkWritesTwoCommitsAndCountsOnlyItsOwnUsage(t *testing.T) {
	t.Parallel()
	ws, s := openTwo(t)
	w := ws[0]
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "loop"), weir.Start{ID: "original"})
	if err != nil {
		t.Fatal(err)
	}
	whole := weirkit.AnswerAll(t, w, run)
	fork, plan, err := w.Fork(t.Context(), "original", weir.ForkOptions{From: "grow#3/ask", State: map[string]any{"seen": []any{"edited"}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := fork.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != engine.Paused || r.Interrupts[0].ID != "grow#3/ask:ask#1" {
		t.Fatalf("%+v", r)
	}
	row, err := s.Run(t.Context(), fork.ID)
	if err != nil {
		t.Fatal(err)
	}
	if row.Base == nil || row.Base.Run != "original" || row.Commits != row.Base.Seq+2 {
		t.Errorf("the fork has %d commits over its base %+v", row.Commits, row.Base)
	}
	if r.Usage.Calls != 0 || plan.Shared.Calls != 2 {
		t.Errorf("the fork has spent %+v and shares %+v", r.Usage, plan.Shared)
	}
	v, err := w.Inspect(t.Context(), fork.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if seen, _ := v.Run.State().Get("seen"); !reflect.DeepEqual(seen, []any{"edited"}) {
		t.Errorf("the state is %v", seen)
	}
	end := weirkit.AnswerAll(t, w, fork)
	if end.Usage.Calls != 2 || !reflect.DeepEqual(end.Outputs, whole.Outputs) {
		t.Errorf("it ended with %+v", end)
	}
}

func TestForkInFirstCommitNamesItsOrigin(t *testing.T) {
	t.Parallel()
	ws, s := openTwo(t)
	run, err := ws[0].Start(t.Context(), weirkit.LoadForkFlow(t, ws[0], "chain"), weir.Start{ID: "original"})
	if err != nil {
		t.Fatal(err)
	}
	want := resultText(t, ws[0], weirkit.AnswerAll(t, ws[0], run))
	for range 2 { // the second joins the first
		fork, plan, err := ws[0].Fork(t.Context(), "original", weir.ForkOptions{ID: "fork", At: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := resultText(t, ws[0], weirkit.AnswerAll(t, ws[0], fork)); got != want || plan.At != 1 {
			t.Errorf("forked at %d:\n%s\nthe original:\n%s", plan.At, got, want)
		}
		row, err := s.Run(t.Context(), "fork")
		if err != nil {
			t.Fatal(err)
		}
		if row.Base == nil || *row.Base != (store.Base{Run: "original"}) {
			t.Errorf("the base of the fork is %+v", row.Base)
		}
	}
	d, err := ws[1].Diff(t.Context(), "original", "fork")
	if err != nil || d.Shared == nil || d.Shared.Run != "original" {
		t.Errorf("%+v %v", d.Shared, err)
	}
}

func TestForkErrorsSayWhatToChange(t *testing.T) {
	t.Parallel()
	w := weirkit.OpenForkWeir(t, nil, &weirkit.EchoModel{})
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "branches"), weir.Start{ID: "original"})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, run)
	for text, o := range map[string]weir.ForkOptions{
		"nothing changed":                 {},
		"none is number 1000":             {At: 1000},
		"has no node \"nowhere\"":         {From: "nowhere"},
		"was skipped":                     {From: "long"},
		"exclude each other":              {From: "first", At: 3},
		"state is written at a point":     {State: map[string]any{"x": 1}},
		"no node \"nowhere\" to pause":    {From: "first", Breaks: []string{"nowhere"}},
		"the flow has no input \"other\"": {Inputs: map[string]any{"other": 1}},
	} {
		_, err := w.PlanFork(t.Context(), "original", o)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || !strings.Contains(err.Error(), text) || e.Code != engine.CodeFork && e.Code != engine.CodeInput {
			t.Errorf("%+v: %v, not %q", o, err, text)
		}
	}
	if _, err := w.PlanFork(t.Context(), "none", weir.ForkOptions{At: 1}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

func TestForkOfFailedRunStartsBeforeFailure(t *testing.T) {
	t.Parallel()
	w := weirkit.OpenForkWeir(t, nil, &weirkit.EchoModel{})
	f, err := w.Parse("f", []byte(`
weir: 1
name: f
inputs: {n: {type: number, default: 0}}
nodes:
  first: {type: template, with: {text: first}}
  bad: {type: transform, after: first, in: {n: "{{ run.inputs.n }}"}, with: {expr: "10 / inputs.n"}}
outputs: {out: "{{ bad.value }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "failed"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Failed {
		t.Fatal(r, err)
	}
	v, err := w.Inspect(t.Context(), "failed", 0)
	if err != nil {
		t.Fatal(err)
	}
	last, err := w.PlanFork(t.Context(), "failed", weir.ForkOptions{At: v.Run.Events()})
	if err != nil {
		t.Fatal(err)
	}
	if last.RequestedAt != v.Run.Events() || last.At >= last.RequestedAt {
		t.Errorf("shared up to %d, asked for %d", last.At, last.RequestedAt)
	}
	fork, plan, err := w.Fork(t.Context(), "failed", weir.ForkOptions{Inputs: map[string]any{"n": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = fork.Wait(t.Context()); err != nil || r.Status != engine.Completed || r.Outputs[0].Value != int64(2) {
		t.Fatal(r, err)
	}
	want := []runner.Reuse{runner.NodeReused, runner.NodeRestarts}
	var got []runner.Reuse
	for _, n := range plan.Nodes {
		got = append(got, n.Reuse)
	}
	if !slices.Equal(got, want) || plan.Nodes[1].Reason != "reads the input n" {
		t.Errorf("%+v", plan.Nodes)
	}
}

func TestRerunComparesAsEqual(t *testing.T) {
	t.Parallel()
	w := weirkit.OpenForkWeir(t, nil, &weirkit.EchoModel{})
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "child"), weir.Start{ID: "first", User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, run)
	again, err := w.Rerun(t.Context(), "first", weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, again)
	d, err := w.Diff(t.Context(), "first", again.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Same || d.B.User != "ada" {
		t.Errorf("%+v", d)
	}
	chain, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "chain"), weir.Start{ID: "chain"})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, chain)
	if again, err = w.Rerun(t.Context(), "chain", weir.Start{}); err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, again)
	if d, err = w.Diff(t.Context(), "chain", again.ID); err != nil || !d.Same {
		t.Errorf("%+v %v", d, err)
	}
	fork, _, err := w.Fork(t.Context(), "chain", weir.ForkOptions{From: "note", Inputs: map[string]any{"name": "Bo"}})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, fork)
	if d, err = w.Diff(t.Context(), again.ID, fork.ID); err != nil || d.Same || d.Shared != nil || len(d.Inputs) != 1 || d.Inputs[0].Name != "name" {
		t.Errorf("%+v %v", d, err)
	}
	if d, err = w.Diff(t.Context(), "chain", fork.ID); err != nil || d.Shared == nil || d.Shared.Run != "chain" {
		t.Errorf("%+v %v", d, err)
	}
}

func TestRunPausesAtBreakpointsInsideLoops(t *testing.T) {
	t.Parallel()
	w := weirkit.OpenForkWeir(t, nil, &weirkit.EchoModel{})
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "loop"), weir.Start{Breaks: []string{"write", "end"}})
	if err != nil {
		t.Fatal(err)
	}
	var breaks []string
	for {
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != engine.Paused {
			break
		}
		i := r.Interrupts[0]
		if i.Kind == engine.AwaitBreak {
			breaks = append(breaks, i.ID)
		}
		if run, err = w.Answer(t.Context(), r.Run, i.ID, "x", ""); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"grow#1/write:before#1", "grow#2/write:before#1", "grow#3/write:before#1", "end:before#1"}
	if !slices.Equal(breaks, want) {
		t.Errorf("it paused at %v", breaks)
	}
}
