package runner_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// TestRunTimeoutStopsEverythingInTheRun has a function, a retry, a timer, a question of a
// child run and a list in progress when the time of the whole run is over.
func TestRunTimeoutStopsEverythingInTheRun(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{}, 8)
	blocks := weir.Func("blocks", func(ctx weir.Ctx, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		stopped <- struct{}{}
		return struct{}{}, ctx.Err()
	})
	w := weirkit.Open(t, weir.Options{Store: memory.New(), Types: []weir.Type{blocks}})
	child, err := w.Parse("child.yaml", []byte("weir: 1\nname: child\nnodes: {ask: {type: userInput}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: limited
timeout: 30ms
nodes:
  work: {type: blocks}
  timer: {type: wait, with: {for: 1h}}
  again: {type: fail, with: {message: "no"}, retry: {attempts: 9, backoff: 5m, on: failed}}
  below: {type: flow, with: {flow: child}}
  list: {type: forEach, in: {items: [1, 2]}, with: {concurrency: 2, onItemError: drop, body: {nodes: {inner: {type: wait, with: {for: 1h}}}}}}
  handled: {type: template, after: timer.error, with: {text: "not reached"}}
`), child)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if r.Status != engine.Failed || r.Error.Code != engine.CodeRunTimeout || len(r.Interrupts) > 0 {
		t.Fatalf("%s %v %v", r.Status, r.Error, r.Interrupts)
	}
	<-stopped
	rows, err := w.Runs(t.Context(), store.Filter{Parent: "run"})
	if err != nil || len(rows) != 1 || rows[0].Head.Status != engine.Cancelled {
		t.Errorf("the child runs are %+v: %v", rows, err)
	}
}

// TestRunTimeoutEndsAPausedRunInARecoveringProcess leaves a run that waits for a person and
// opens a process that recovers runs: it ends the run.
func TestRunTimeoutEndsAPausedRunInARecoveringProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	w := weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, file)})
	run := weirkit.StartText(t, w, "weir: 1\nname: limited\ntimeout: 300ms\nnodes: {ask: {type: userInput}}\n")
	if r := weirkit.Wait(t, run); r.Status != engine.Paused {
		t.Fatal(r.Status, r.Error)
	}
	if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	w = weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, file), Recover: true})
	for item, err := range w.Follow(t.Context(), "run", "") {
		if err != nil {
			t.Fatal(err)
		}
		if failed, ok := item.Event.(*engine.RunFailed); ok {
			if failed.Error.Code != engine.CodeRunTimeout {
				t.Error(failed.Error)
			}
			return
		}
	}
	t.Error("the stream ended without the failure of the run")
}
