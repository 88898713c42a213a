//go:build linux

package temporal_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/temporal"
)

// stuckAs waits until a process says why a run is stuck.
func (w *world) stuckAs(x *weir.Weir, run, reason, detail string) {
	w.t.Helper()
	var got weir.StuckRun
	w.until("run "+run+" is stuck: "+reason, func() bool {
		list, err := x.StuckRuns(w.t.Context(), weir.StuckOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range list {
			if list[i].Run == run {
				got = list[i]
			}
		}
		return got.Reason == reason
	})
	if got.Runner != temporal.Name || got.Next == "" || !strings.Contains(got.Detail, detail) {
		w.t.Errorf("%+v", got)
	}
}

// workerOf starts a worker for another Weir than that of world.worker.
func (w *world) workerOf(o weir.Options) (stop func()) {
	w.t.Helper()
	return w.versionedWorker(o, temporal.WorkerOptions{Sweep: time.Hour})
}

// versionedWorker is workerOf with options of the worker.
func (w *world) versionedWorker(o weir.Options, wo temporal.WorkerOptions) (stop func()) {
	w.t.Helper()
	var err error
	if o.Store, err = openStore(w.t.Context(), w.database); err != nil {
		w.t.Fatal(err)
	}
	x, err := weir.Open(o)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := temporal.Dial(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	k := temporal.NewWorker(x, c, wo)
	if err := k.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		k.Stop()
		_ = c.Close()
		_ = x.Close(context.Background())
	})
	w.t.Cleanup(stop)
	return stop
}

func TestStuckRunsOnTemporalAreListedWithTheReason(t *testing.T) {
	never := temporal.WorkerOptions{Sweep: time.Hour}
	for reason, test := range map[string]func(w *world, x *weir.Weir){
		"no_worker": func(w *world, x *weir.Weir) {
			r := w.start(x, w.flow(x, paying), weir.Start{})
			w.stuckAs(x, r.ID, "no_worker", w.queue)
			w.stuckAs(w.open(weir.Options{}), r.ID, weir.StuckRunnerNotReached, temporal.Name)
		},
		"no_workflow": func(w *world, x *weir.Weir) {
			r := w.start(x, w.flow(x, paying), weir.Start{})
			if err := w.sdk().TerminateWorkflow(w.t.Context(), r.ID, "", "lost"); err != nil {
				w.t.Fatal(err)
			}
			w.worker(never)
			w.stuckAs(x, r.ID, "no_workflow", "Terminated")
		},
		"workflow_failed": func(w *world, x *weir.Weir) {
			r := w.start(x, w.flow(x, paying), weir.Start{})
			w.workerOf(weir.Options{Executes: "another", Types: types(w.ledger.server.URL)})
			w.stuckAs(x, r.ID, "workflow_failed", "other_runner")
		},
		"activity_failing": func(w *world, x *weir.Weir) {
			r := w.start(x, w.flow(x, paying), weir.Start{})
			stop := w.workerOf(weir.Options{Executes: temporal.Name}) // it has no type pay
			w.stuckAs(x, r.ID, "activity_failing", "missing")
			stop()
			w.worker(never)
			w.wait(r, weir.Completed)
			if list, err := x.StuckRuns(w.t.Context(), weir.StuckOptions{}); err != nil || len(list) > 0 {
				w.t.Errorf("after its end: %+v, %v", list, err)
			}
		},
		"waits_for_capacity": func(w *world, x *weir.Weir) {
			release := make(chan struct{})
			defer close(release)
			w.ledger.setCheck(func(string, string) { <-release })
			w.worker(temporal.WorkerOptions{Runs: 1, Sweep: time.Hour})
			first := w.start(x, w.flow(x, paying), weir.Start{})
			w.until("the first run is executed", func() bool { return w.ledger.total() > 0 })
			second := w.start(x, w.flow(x, paying), weir.Start{})
			w.stuckAs(x, second.ID, "waits_for_capacity", "room")
			if list, err := x.StuckRuns(w.t.Context(), weir.StuckOptions{}); err != nil || len(list) != 1 {
				w.t.Errorf("%d runs are stuck, %v; run %s is not", len(list), err, first.ID)
			}
		},
		"none": func(w *world, x *weir.Weir) {
			w.worker(never)
			w.restAs(x, asking, weir.Start{}, weir.Paused)
			w.restAs(x, paying, weir.Start{}, weir.Completed)
			if list, err := x.StuckRuns(w.t.Context(), weir.StuckOptions{}); err != nil || len(list) > 0 {
				w.t.Errorf("runs that wait for people or have ended: %+v, %v", list, err)
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			test(w, w.client())
		})
	}
}
