package history_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// The node types of the process that wrote the record.
type (
	recordIn struct {
		Text string `weir:"text,optional"`
	}
	recordOut struct {
		Text string `weir:"text"`
	}
)

// recordTypes are node types as one process has them: version 0 has none.
func recordTypes(t *testing.T, version int, renamed bool) []weir.Type {
	t.Helper()
	var types []weir.Type
	shout := func(_ weir.Ctx, in recordIn) (recordOut, error) { return recordOut{in.Text + "!"}, nil }
	fail := func(weir.Ctx, recordIn) (recordOut, error) { return recordOut{}, errors.New("it broke") }
	block := func(ctx weir.Ctx, _ recordIn) (recordOut, error) {
		<-ctx.Done()
		return recordOut{}, ctx.Err()
	}
	if version == 0 {
		return nil
	}
	if renamed {
		type other struct {
			Words string `weir:"words,optional"`
		}
		types = append(types, weir.Func("blocks", block),
			weir.Func("shout", func(_ weir.Ctx, in other) (recordOut, error) { return recordOut{in.Words}, nil }),
			weir.Func("breaks", fail))
		return types
	}
	for _, f := range []*weir.Function{weir.Func("shout", shout), weir.Func("breaks", fail), weir.Func("blocks", block)} {
		types = append(types, f.Version(version))
	}
	return types
}

// recordFlows leave a run in each status that a record can be read in.
func recordFlows() map[string]string {
	const head = "weir: 1\nname: rec\nnodes:\n  a: {type: shout, in: {text: hey}}\n"
	const outputs = "outputs: {said: \"{{ a.text }}\"}\n"
	return map[string]string{
		"completed": head + "  b: {type: shout, in: {text: \"{{ a.text }}\"}}\n" + outputs,
		"failed":    head + "  b: {type: breaks, in: {text: \"{{ a.text }}\"}}\n" + outputs,
		"paused":    head + "  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n  b: {type: shout, in: {text: \"{{ ask.text }}\"}}\n" + outputs,
		"iterating": head + "  each:\n    type: forEach\n    in: {items: [1, 2]}\n    with:\n      body:\n        nodes:\n          ask: {type: userInput, with: {prompt: Sure?}}\n          b: {type: shout, in: {text: \"{{ ask.text }}\"}}\n        outputs: {r: \"{{ b.text }}\"}\n" + outputs,
		"running":   head + "  b: {type: blocks, in: {text: \"{{ a.text }}\"}}\n" + outputs,
		"parent":    head + "  c: {type: flow, after: a, with: {flow: child}}\n" + outputs,
	}
}

const recordChild = "weir: 1\nname: child\nnodes:\n  a: {type: shout, in: {text: hey}}\n  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n"

func TestRunIsReadAndCancelledWithoutItsNodeTypes(t *testing.T) {
	t.Parallel()
	changes := map[string][]weir.Type{
		"unchanged": recordTypes(t, 1, false), "absent": recordTypes(t, 0, false),
		"version bumped": recordTypes(t, 2, false), "input renamed": recordTypes(t, 1, true),
	}
	for change, types := range changes {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			s := weirkit.SharedMemory{Store: memory.New()}
			was := writeRecord(t, s)
			w, err := weir.Open(weir.Options{Store: s, Types: types})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a store that stays
			for id, seen := range was {
				readRecord(t, w, id, seen, was)
			}
			for id, seen := range was {
				cancelRecord(t, w, s, id, seen, change)
			}
		})
	}
}

// recordedState is what a run showed to the process that wrote it.
type recordedState struct {
	status   engine.Status
	nodes    []engine.Node
	work     []history.Work
	messages int
	outputs  engine.Values
}

func recordedStateOf(t *testing.T, w *weir.Weir, id string) recordedState {
	t.Helper()
	v, err := w.Inspect(t.Context(), id, 0)
	if err != nil {
		t.Fatalf("inspect %s: %v", id, err)
	}
	r := recordedState{status: v.Run.Status(), nodes: v.Run.Nodes(), outputs: v.Run.Outputs(), messages: v.Contexts[engine.MainContext].History.Len()}
	for work, err := range w.Chain(t.Context(), id) {
		if err != nil {
			t.Fatalf("chain of %s: %v", id, err)
		}
		work.Before, work.After = engine.State{}, engine.State{}
		r.work = append(r.work, work)
	}
	return r
}

// writeRecord makes a run of each flow with the first process's types.
func writeRecord(t *testing.T, s weir.Store) map[string]recordedState {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: s, Types: recordTypes(t, 1, false)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a store that stays
	child, err := w.Parse("child", []byte(recordChild))
	if err != nil {
		t.Fatal(err)
	}
	was := make(map[string]recordedState)
	for id, text := range recordFlows() {
		f, err := w.Parse("rec.yaml", []byte(text), child)
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		awaitRecord(t, run, id)
		was[id] = recordedStateOf(t, w, id)
	}
	fork, _, err := w.Fork(t.Context(), "paused", weir.ForkOptions{ID: "forked", From: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	was["forked"] = recordedStateOf(t, w, "forked")
	return was
}

// awaitRecord waits until a run has come as far as its record is to show: the one
// that stays running to the start of its last node, every other to its end or pause.
func awaitRecord(t *testing.T, run *weir.Run, id string) {
	t.Helper()
	if id == "running" {
		for item, err := range run.Events(t.Context()) {
			if e, ok := item.Event.(*engine.NodeStarted); err != nil || ok && e.Path == "b" {
				break
			}
		}
	} else if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func readRecord(t *testing.T, w *weir.Weir, id string, was recordedState, all map[string]recordedState) {
	t.Helper()
	if is := recordedStateOf(t, w, id); !reflect.DeepEqual(is, was) {
		t.Errorf("%s: read\n%+v\nwas\n%+v", id, is, was)
	}
	for other := range all {
		if _, err := w.Diff(t.Context(), id, other); err != nil {
			t.Errorf("diff %s %s: %v", id, other, err)
		}
	}
	if _, err := w.Trajectory(t.Context(), id, 0); err != nil {
		t.Errorf("trajectory of %s: %v", id, err)
	}
	if _, err := w.FlowOf(t.Context(), id); err != nil {
		t.Errorf("the flow of %s: %v", id, err)
	}
}

func cancelRecord(t *testing.T, w *weir.Weir, s weir.Store, id string, was recordedState, change string) {
	t.Helper()
	if was.status != engine.Paused && was.status != engine.Running {
		return
	}
	if change != "unchanged" { // running needs the types, and is refused with what is missing
		if _, err := w.Resume(t.Context(), id); err == nil {
			t.Errorf("%s was continued under other node types", id)
		}
	}
	run, err := w.Cancel(t.Context(), id, "me", "enough")
	if err != nil {
		t.Errorf("cancel %s: %v", id, err)
		return
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Cancelled {
		t.Errorf("cancelled %s: %s, %v", id, r.Status, err)
	}
	below, err := s.Runs(t.Context(), store.Filter{Parent: id})
	if err != nil {
		t.Error(err)
	}
	for _, c := range below {
		if c.Head.Status != engine.Cancelled {
			t.Errorf("the child %s of %s is %s", c.ID, id, c.Head.Status)
		}
	}
	v, err := w.Inspect(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	last := v.Commits[len(v.Commits)-1].Events
	if _, ok := last[len(last)-1].(*engine.RunCancelled); !ok || slices.ContainsFunc(v.Run.Nodes(), func(n engine.Node) bool { return n.Status == engine.Running || n.Status == engine.Waiting }) {
		t.Errorf("%s ends with %T and nodes %v", id, last[len(last)-1], v.Run.Nodes())
	}
}
