//go:build linux

package temporal_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/temporal"
)

// kept reports what Temporal has of a run: executions of its workflow, by describing the newest and by the index.
func (w *world) kept(run string) (found int) {
	w.t.Helper()
	_, err := w.sdk().DescribeWorkflowExecution(w.t.Context(), run, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); err != nil && !missing {
		w.t.Fatal(err)
	} else if !missing {
		found++
	}
	list, err := w.sdk().ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "TaskQueue = '" + w.queue + "'"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range list.GetExecutions() {
		if x.GetExecution().GetWorkflowId() == run {
			found++
		}
	}
	return found
}

// TestDeletionReachesTemporal deletes runs in each state, by each of the ways to delete, and looks for their workflows.
func TestDeletionReachesTemporal(t *testing.T) {
	waitsLong := strings.Replace(timerFlow, "2s", "1h", 1)
	states := map[string]func(w *world, x *weir.Weir, s weir.Start) *weir.Run{
		"ended":  func(w *world, x *weir.Weir, s weir.Start) *weir.Run { return w.restAs(x, paying, s, weir.Completed) },
		"failed": func(w *world, x *weir.Weir, s weir.Start) *weir.Run { return w.restAs(x, failingFlow, s, weir.Failed) },
		"asking": func(w *world, x *weir.Weir, s weir.Start) *weir.Run { return w.restAs(x, asking, s, weir.Paused) },
		"waiting": func(w *world, x *weir.Weir, s weir.Start) *weir.Run {
			s.Inputs = map[string]any{"text": "t"}
			r := w.start(x, w.flow(x, waitsLong), s)
			w.until("the run rests", func() bool {
				row, err := x.Runs(w.t.Context(), store.Filter{})
				return err == nil && row[0].Owner == "" && row[0].Head.Due > 0 && w.pendingActivities(r.ID) == 0
			})
			return r
		},
		"executed twice": func(w *world, x *weir.Weir, s weir.Start) *weir.Run {
			r := w.restAs(x, asking, s, weir.Paused)
			if err := w.sdk().TerminateWorkflow(w.t.Context(), r.ID, "", "lost"); err != nil {
				w.t.Fatal(err)
			}
			if _, err := x.Resume(w.t.Context(), r.ID); err != nil {
				w.t.Fatal(err)
			}
			w.until("both executions are in the index", func() bool { return w.kept(r.ID) == 3 })
			return r
		},
	}
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	other := w.restAs(x, asking, weir.Start{User: "bob"}, weir.Paused)
	var deleted []string
	for state, begin := range states {
		for way, remove := range map[string]func(r *weir.Run, user string) error{
			"run": func(r *weir.Run, _ string) error {
				return errOnlyDeleted(x.DeleteRun(t.Context(), r.ID, store.DeleteOptions{}))
			},
			"user": func(_ *weir.Run, user string) error {
				return errOnlyDeleted(x.DeleteUser(t.Context(), user, store.DeleteOptions{}))
			},
		} {
			user := "ann " + state + way
			r := begin(w, x, weir.Start{ID: `it's "\` + runner.NewID(), User: user})
			if w.kept(r.ID) == 0 {
				t.Fatal("there is no workflow to delete")
			}
			w.delete(func() error { return remove(r, user) })
			deleted = append(deleted, r.ID)
		}
	}
	w.forgotten(deleted)
	if w.kept(other.ID) == 0 {
		t.Error("the workflow of another user is gone")
	}
}

// delete repeats a deletion while a worker owns a run: after it has come to rest, its lease is released a moment later.
func (w *world) delete(do func() error) {
	w.t.Helper()
	w.until("the records are deleted", func() bool {
		err := do()
		if err != nil && !errors.Is(err, store.ErrOwned) {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// forgotten waits until Temporal has nothing of some runs: the development server takes half a minute.
func (w *world) forgotten(runs []string) {
	w.t.Helper()
	for _, id := range runs {
		w.until("Temporal has nothing of run "+id, func() bool { return w.kept(id) == 0 })
	}
}

func errOnlyDeleted(_ store.DeleteResult, err error) error { return err }

// restAs starts a run and waits until it rests.
func (w *world) restAs(x *weir.Weir, flow string, s weir.Start, status weir.Status) *weir.Run {
	w.t.Helper()
	r := w.start(x, w.flow(x, flow), s)
	w.wait(r, status)
	return r
}

func TestDeletionOfASessionReachesTemporal(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	other := w.session(x, counting, weir.SessionOptions{New: true, User: "bob"})
	kept := w.say(other, "3", weir.Completed).Run
	var deleted []string
	for way, remove := range map[string]func(s *weir.Session, user string) error{
		"session": func(s *weir.Session, _ string) error {
			return errOnlyDeleted(x.DeleteSession(t.Context(), s.ID, store.DeleteOptions{}))
		},
		"handle": func(s *weir.Session, _ string) error { return errOnlyDeleted(s.Delete(t.Context())) },
		"user": func(_ *weir.Session, user string) error {
			return errOnlyDeleted(x.DeleteUser(t.Context(), user, store.DeleteOptions{}))
		},
		"prune": func(s *weir.Session, user string) error {
			_, err := x.PruneSessions(t.Context(), store.PruneOptions{Now: time.Now().Add(time.Hour), User: user, OlderThan: time.Minute})
			if _, there := x.SessionState(t.Context(), s.ID); err == nil && there == nil {
				return store.ErrOwned // it was kept
			}
			return err
		},
	} {
		user := "ann " + way
		s := w.session(x, counting, weir.SessionOptions{New: true, User: user})
		for _, message := range []string{"1", "2"} {
			deleted = append(deleted, w.say(s, message, weir.Completed).Run)
		}
		w.delete(func() error { return remove(s, user) })
	}
	w.forgotten(deleted)
	if w.kept(kept) == 0 {
		t.Error("the workflow of another session is gone")
	}
}

// TestARunOfARunnerThatIsNotReachedIsNotDeleted has a process without a connection to Temporal delete a run.
func TestARunOfARunnerThatIsNotReachedIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.restAs(x, asking, weir.Start{User: "ann"}, weir.Paused)
	local := w.open(weir.Options{})
	for _, o := range []store.DeleteOptions{{DryRun: true}, {}} {
		for way, err := range map[string]error{
			"run":  errOnlyDeleted(local.DeleteRun(t.Context(), r.ID, o)),
			"user": errOnlyDeleted(local.DeleteUser(t.Context(), "ann", o)),
		} {
			if other, ok := errors.AsType[*runner.OtherRunner](err); !ok || other.Run != r.ID || other.Runner != temporal.Name {
				t.Errorf("%s, %+v: %v", way, o, err)
			}
		}
	}
	if rows, err := x.Runs(t.Context(), store.Filter{}); err != nil || len(rows) != 1 {
		t.Fatalf("%d runs are left, %v", len(rows), err)
	}
	gone, err := local.DeleteRun(t.Context(), r.ID, store.DeleteOptions{Force: true})
	if err != nil || !strings.Contains(gone.Remains, r.ID) {
		t.Errorf("with Force: %q, %v", gone.Remains, err)
	}
	// The workflow that remains finds no run when it is woken, and is deleted by the worker.
	if err := w.sdk().SignalWorkflow(t.Context(), r.ID, "", "wake", nil); err != nil {
		t.Fatal(err)
	}
	w.until("the worker deletes the workflow", func() bool { return w.kept(r.ID) == 0 })
}

// TestNothingIsDeletedWhileTemporalIsAway cuts the connection to Temporal.
func TestNothingIsDeletedWhileTemporalIsAway(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	address, cut := relay(t, w.address)
	x := w.client(func(o *temporal.Options) { o.Address = address })
	r := w.restAs(x, asking, weir.Start{User: "ann"}, weir.Paused)
	cut()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := x.DeleteUser(ctx, "ann", store.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "nothing was deleted") {
		t.Errorf("a deletion without Temporal: %v", err)
	}
	if rows, err := x.Runs(t.Context(), store.Filter{}); err != nil || len(rows) != 1 || rows[0].ID != r.ID {
		t.Errorf("the store has %d runs, %v", len(rows), err)
	}
}

// relay passes connections on to an address until cut is called.
func relay(t *testing.T, to string) (address string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { pass(ctx, c, to) })
		}
	})
	cut = sync.OnceFunc(func() {
		cancel()
		_ = l.Close()
		open.Wait()
	})
	t.Cleanup(cut)
	return l.Addr().String(), cut
}

// pass copies both directions of a connection until one ends, or ctx.
func pass(ctx context.Context, c net.Conn, to string) {
	up, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		_ = c.Close()
		return
	}
	end := sync.OnceFunc(func() {
		_ = c.Close()
		_ = up.Close()
	})
	defer context.AfterFunc(ctx, end)()
	var copies sync.WaitGroup
	for _, x := range [][2]net.Conn{{c, up}, {up, c}} {
		copies.Go(func() {
			defer end()
			_, _ = io.Copy(x[0], x[1])
		})
	}
	copies.Wait()
}
