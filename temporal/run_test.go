//go:build linux

package temporal_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/temporal"
)

const paying = `
weir: 1
name: paying
nodes:
  a: {type: pay, in: {value: 1}}
  b: {type: pay, in: {value: "{{ a.receipt }}"}}
  c: {type: pay, in: {value: "{{ b.receipt }}"}}
  d: {type: pay, in: {value: "{{ c.receipt }}"}}
  e: {type: pay, in: {value: "{{ d.receipt }}"}}
outputs: {receipt: "{{ e.receipt }}"}
`

const asking = `
weir: 1
name: asking
nodes:
  ask: {type: userInput, with: {prompt: "How many?", schema: {type: integer}}}
  pay: {type: pay, in: {value: "{{ ask.value }}"}}
outputs: {n: "{{ ask.value }}", receipt: "{{ pay.receipt }}"}
`

func TestARunIsExecutedByAWorker(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, paying), weir.Start{})
	got := w.wait(r, weir.Completed)
	if v, _ := weir.Output[string](got, "receipt"); v != "receipt of "+r.ID+"/e/pay#1" {
		t.Fatalf("the output is %q", v)
	}
	n := 0
	for _, err := range r.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 10 {
		t.Errorf("the events of the run are %d", n)
	}
}

func TestAKilledWorkerRepeatsNoJournaledEffect(t *testing.T) {
	w := newWorld(t)
	w.ledger.setDelay(300 * time.Millisecond)
	first := w.process()
	x := w.client()
	r := w.start(x, w.flow(x, paying), weir.Start{})
	w.until("two effects have started", func() bool { return w.ledger.total() >= 2 })
	journaled := w.journaledEffects(x, r.ID)
	kill(first)
	w.process()
	w.wait(r, weir.Completed)
	for key, n := range w.ledger.counts() {
		if journaled[key] && n != 1 || n > 2 {
			t.Errorf("%s was asked for %d times, journaled: %t", key, n, journaled[key])
		}
	}
	if w.ledger.total() != 5 {
		t.Errorf("%d effects, want 5", w.ledger.total())
	}
}

func TestAnAnswerIsAnUpdateWhoseRefusalComesBack(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, asking), weir.Start{})
	w.wait(r, weir.Paused)
	if err := r.Answer(t.Context(), "ask:ask#1", "many"); !errors.Is(err, runner.ErrAnswer) || !strings.Contains(err.Error(), "integer") {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if err := r.Answer(t.Context(), "other:ask#1", 1); !errors.Is(err, runner.ErrNoInterrupt) {
		t.Errorf("an answer to no question: %v", err)
	}
	if err := errOnly(x.Answer(t.Context(), r.ID, "ask:ask#1", 42, "ann")); err != nil {
		t.Fatal(err)
	}
	got := w.wait(r, weir.Completed)
	if n, _ := weir.Output[int](got, "n"); n != 42 {
		t.Errorf("the answer is %d", n)
	}
	if err := errOnly(x.Answer(t.Context(), r.ID, "ask:ask#1", 43, "bob")); !errors.Is(err, runner.ErrNoInterrupt) {
		t.Errorf("a second answer: %v", err)
	}
}

func TestOneOfManyAnswersWins(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, asking), weir.Start{})
	w.wait(r, weir.Paused)
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() { errs <- errOnly(x.Answer(context.Background(), r.ID, "ask:ask#1", i, "ann")) }()
	}
	won := 0
	for range cap(errs) {
		err := <-errs
		if err == nil {
			won++
		} else if !errors.Is(err, runner.ErrNoInterrupt) {
			t.Errorf("a late answer: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d answers were accepted", won)
	}
	w.wait(r, weir.Completed)
}

// TestAnAnswerNeedsNoPlaceForARun has a worker with one place, and a run whose lease another process has at first: while its execution is
// tried again, the activity that waits for the outcome of the answer must not keep the place.
func TestAnAnswerNeedsNoPlaceForARun(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{Runs: 1})
	x := w.client()
	r := w.start(x, w.flow(x, asking), weir.Start{})
	w.wait(r, weir.Paused)
	s, err := openStore(t.Context(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	w.until("the lease is free", func() bool {
		_, err := s.Acquire(t.Context(), r.ID, "there:1:a", 3*time.Second)
		return err == nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := errOnly(x.Answer(ctx, r.ID, "ask:ask#1", 42, "ann")); err != nil {
		t.Fatal(err)
	}
	w.wait(r, weir.Completed)
}

func TestARunIsCancelled(t *testing.T) {
	for name, cancel := range map[string]func(w *world, x *weir.Weir, r *weir.Run) error{
		"by Weir": func(_ *world, x *weir.Weir, r *weir.Run) error {
			return errOnly(x.Cancel(context.Background(), r.ID, "ann", ""))
		},
		"in Temporal": func(w *world, _ *weir.Weir, r *weir.Run) error {
			return w.sdk().CancelWorkflow(context.Background(), r.ID, "")
		},
	} {
		for state, text := range map[string]string{"while it waits": asking, "while it executes": paying} {
			t.Run(name+" "+state, func(t *testing.T) {
				testCancel(t, text, cancel)
			})
		}
	}
}

func testCancel(t *testing.T, text string, cancel func(w *world, x *weir.Weir, r *weir.Run) error) {
	t.Helper()
	w := newWorld(t)
	// The second effect lasts until the test ends, unless it is cancelled.
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	w.ledger.setCheck(func(string, string) {
		if w.ledger.total() >= 2 {
			<-ended
		}
	})
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, text), weir.Start{})
	if text == asking {
		w.wait(r, weir.Paused)
	} else {
		w.until("an effect is in flight", func() bool { return w.ledger.total() > 0 })
	}
	if err := cancel(w, x, r); err != nil {
		t.Fatal(err)
	}
	w.until("the run is cancelled", func() bool {
		row, err := x.Runs(t.Context(), store.Filter{})
		return err == nil && row[0].Head.Status == weir.Cancelled
	})
	w.until("the workflow is closed as cancelled", func() bool { return w.workflowStatus(r.ID) == "Canceled" })
	if w.ledger.total() > 2 {
		t.Errorf("%d effects have started", w.ledger.total())
	}
}

func TestATimerFiresThatCameDueWithoutAWorker(t *testing.T) {
	w := newWorld(t)
	stop := w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, `
weir: 1
name: late
nodes:
  wait: {type: wait, with: {for: 15s}}
  pay: {type: pay, in: {value: "{{ wait.value }}"}}
outputs: {receipt: "{{ pay.receipt }}"}
`), weir.Start{})
	w.until("the run rests without an owner", func() bool {
		row, err := x.Runs(t.Context(), store.Filter{})
		return err == nil && row[0].Owner == "" && row[0].Head.Due > 0 && w.pendingActivities(r.ID) == 0
	})
	begun := time.Now()
	stop()
	pause(t.Context(), time.Until(begun.Add(16*time.Second)))
	if w.ledger.total() != 0 {
		t.Fatal("the node after the timer ran without a worker")
	}
	w.worker(temporal.WorkerOptions{})
	w.wait(r, weir.Completed)
}

func TestAChildFlowRunsWithItsParent(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	child := w.flow(x, `
weir: 1
name: child
nodes:
  wait: {type: wait, with: {for: 3s}}
  ask: {type: userInput, after: wait, with: {prompt: "Go on?", schema: {type: boolean}}}
outputs: {ok: "{{ ask.value }}"}
`)
	r := w.start(x, w.flow(x, `
weir: 1
name: parent
nodes:
  sub: {type: flow, with: {flow: child}}
  pay: {type: pay, in: {value: "{{ sub.ok }}"}}
outputs: {receipt: "{{ pay.receipt }}"}
`, child), weir.Start{})
	w.until("parent and child rest for the child's timer", func() bool {
		rows, err := x.Runs(t.Context(), store.Filter{})
		return err == nil && len(rows) == 2 && rows[0].Owner == "" && rows[1].Owner == "" && w.pendingActivities(r.ID) == 0
	})
	got := w.wait(r, weir.Paused)
	if len(got.Interrupts) != 1 {
		t.Fatalf("the run waits for %v", got.Interrupts)
	}
	id := got.Interrupts[0].ID
	if err := errOnly(x.Answer(t.Context(), r.ID, id, "perhaps", "ann")); !errors.Is(err, runner.ErrAnswer) {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if err := errOnly(x.Answer(t.Context(), r.ID, id, true, "ann")); err != nil {
		t.Fatal(err)
	}
	w.wait(r, weir.Completed)
}

func TestTheQueueOfAFlowIsConfigured(t *testing.T) {
	w := newWorld(t)
	other := w.queue + "-gpu"
	x := w.client(func(o *temporal.Options) { o.TaskQueues = map[string]string{"paying": other} })
	r := w.start(x, w.flow(x, paying), weir.Start{})
	asked := w.start(x, w.flow(x, asking), weir.Start{})
	w.worker(temporal.WorkerOptions{})
	w.wait(asked, weir.Paused)
	if w.ledger.total() != 0 {
		t.Fatal("a worker of another queue has executed the run")
	}
	w.worker(temporal.WorkerOptions{TaskQueue: other})
	w.wait(r, weir.Completed)
}

func TestALostWorkflowIsRestartedFromTheJournal(t *testing.T) {
	w := newWorld(t)
	// The second effect takes until the workflow is there again: a run that completes before that needs none.
	restarted := make(chan struct{})
	release := sync.OnceFunc(func() { close(restarted) })
	t.Cleanup(release)
	w.ledger.setCheck(func(string, string) {
		if w.ledger.total() >= 2 {
			<-restarted
		}
	})
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, paying), weir.Start{})
	w.until("two effects have started", func() bool { return w.ledger.total() >= 2 })
	if err := w.sdk().TerminateWorkflow(t.Context(), r.ID, "", "lost"); err != nil {
		t.Fatal(err)
	}
	w.until("a workflow is started again", func() bool { return w.workflowStatus(r.ID) == "Running" })
	release()
	w.wait(r, weir.Completed)
	w.until("its workflow completes", func() bool { return w.workflowStatus(r.ID) == "Completed" })
	for key, n := range w.ledger.counts() {
		if n > 2 {
			t.Errorf("%s was asked for %d times", key, n)
		}
	}
}

func TestWithoutAWorkerItIsSaidSo(t *testing.T) {
	w := newWorld(t)
	notes := make(chan string, 10)
	x := w.client(func(o *temporal.Options) { o.Notify = func(s string) { notes <- s } })
	r := w.start(x, w.flow(x, asking), weir.Start{})
	if note := <-notes; !strings.Contains(note, w.queue) || !strings.Contains(note, "weir-temporal worker") {
		t.Errorf("the note is %q", note)
	}
	if err := r.Answer(t.Context(), "ask:ask#1", 1); !errors.Is(err, temporal.ErrNoWorker) || !strings.Contains(err.Error(), w.queue) {
		t.Errorf("an answer without a worker: %v", err)
	}
	w.worker(temporal.WorkerOptions{})
	w.until("the run ends with the answer that was kept, or asks", func() bool {
		row, err := x.Runs(t.Context(), store.Filter{})
		return err == nil && row[0].Head.Status == weir.Paused
	})
}

func TestOtherProcessesReadTheJournalAndDoNotExecuteTheRun(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, asking), weir.Start{})
	w.wait(r, weir.Paused)
	local := w.open(weir.Options{})
	for name, try := range map[string]func() error{
		"answer": func() error { return errOnly(local.Answer(t.Context(), r.ID, "ask:ask#1", 1, "")) },
		"resume": func() error { return errOnly(local.Resume(t.Context(), r.ID)) },
		"cancel": func() error { return errOnly(local.Cancel(t.Context(), r.ID, "", "")) },
	} {
		if err := try(); !errors.Is(err, runner.ErrOtherRunner) {
			t.Errorf("%s by a local process: %v", name, err)
		}
	}
	forked, _, err := local.Fork(t.Context(), r.ID, weir.ForkOptions{From: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(forked, weir.Paused)
	if err := forked.Answer(t.Context(), "ask:ask#1", 7); err != nil {
		t.Fatal(err)
	}
	w.wait(forked, weir.Completed)
	again, _, err := x.Fork(t.Context(), r.ID, weir.ForkOptions{From: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(again, weir.Paused)
	if err := again.Answer(t.Context(), "ask:ask#1", 8); err != nil {
		t.Fatal(err)
	}
	w.wait(again, weir.Completed)
	if err := r.Answer(t.Context(), "ask:ask#1", 9); err != nil {
		t.Fatal(err)
	}
	w.wait(r, weir.Completed)
	s, err := openStore(t.Context(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	w.verify(s)
}

func TestARestoredStoreStopsTheRun(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, asking), weir.Start{})
	w.wait(r, weir.Paused)
	worker := w.open(weir.Options{Executes: temporal.Name})
	if _, err := worker.Execute(t.Context(), r.ID, runner.ExecuteOptions{Commits: 100}); !errors.Is(err, runner.ErrJournalBehind) {
		t.Fatalf("got %v", err)
	}
}
