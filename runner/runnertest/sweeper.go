package runnertest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// testSweeper leaves two runs behind that wait for a timer, one of them of a flow that
// the next process cannot run.
func testSweeper(t *testing.T, s Subject) {
	st := s.Store(t)
	if st.Capabilities().Recovery == nil {
		t.Skip("ability: the store knows which runs are due")
	}
	entered, fired := make(chan struct{}, 9), make(chan time.Time, 9)
	var due atomic.Int64
	p := program(t, `
weir: 1
name: nap
nodes:
  a: {type: do, with: {call: nap}}
  b: {type: do, after: a, with: {call: note}}
outputs: {v: "{{ b.value }}"}
`, funcType{"nap": func(c *node.Ctx) error {
		at := c.Now().Add(500 * time.Millisecond)
		_, _, err := c.Wait("nap", engine.Interrupt{Kind: engine.AwaitTimer, Due: at.UnixMilli()})
		if errors.Is(err, node.ErrSuspended) {
			due.Store(at.UnixMilli())
			entered <- struct{}{}
		}
		return err
	}, "note": func(c *node.Ctx) error {
		fired <- c.Now()
		return nil
	}})
	startAndAbandon(t, st, p, entered, "foreign", "r")
	idle := Open(t, st) // does not recover runs
	second := runner.NewLocal(runner.Options{Store: st, Program: func(_ context.Context, id string) (*runner.Program, error) {
		if id != "r" {
			return nil, errors.New("of a flow that this process does not know")
		}
		return p, nil
	}})
	t.Cleanup(func() { closeLocal(t, second) })
	select {
	case at := <-fired:
		if at.UnixMilli() < due.Load() {
			t.Errorf("fired at %d, due at %d", at.UnixMilli(), due.Load())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the timer was not fired")
	}
	if x := second.Held("r"); x != nil {
		if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Completed {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	if idle.Held("r") != nil || idle.Held("foreign") != nil || second.Held("foreign") != nil {
		t.Error("a process holds what it was not to touch")
	}
	r, err := st.Run(t.Context(), "foreign")
	if err != nil || r.Head.Due == 0 || r.Owner != "" {
		t.Errorf("the run that no process can continue: %+v, %v", r, err)
	}
}

// startAndAbandon starts runs that wait for a timer and closes their process.
func startAndAbandon(t *testing.T, st Store, p *runner.Program, entered <-chan struct{}, ids ...string) {
	t.Helper()
	l := runner.NewLocal(runner.Options{Store: st})
	for _, id := range ids {
		if _, err := l.Start(t.Context(), p, runner.StartOptions{ID: id}); err != nil {
			t.Fatal(err)
		}
		<-entered
		for seen := false; !seen; { // until its timer is on record
			r, err := st.Run(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			seen = r.Head.Due > 0
		}
	}
	closeLocal(t, l)
}

// countingStore counts the events that are read from a store.
type countingStore struct {
	Store
	read atomic.Int64
}

// Commits implements store.Journal.
func (c *countingStore) Commits(ctx context.Context, run string, after int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		for commit, err := range c.Store.Commits(ctx, run, after) {
			c.read.Add(int64(len(commit.Events)))
			if !yield(commit, err) {
				return
			}
		}
	}
}

// withoutCheckpoints is a store that has lost its checkpoints.
type withoutCheckpoints struct{ Store }

// Capabilities omits checkpoints.
func (s withoutCheckpoints) Capabilities() store.Capabilities {
	c := s.Store.Capabilities()
	c.Checkpoints = nil
	return c
}

const busyLoop = `
weir: 1
name: restless
nodes:
  spin:
    type: loop
    with:
      until: outputs.n == 1500
      max: 10000
      body:
        nodes:
          step: {type: do, with: {call: step}}
        outputs: {n: "{{ step.value }}"}
  last: {type: do, after: spin, with: {call: gate}}
outputs: {n: "{{ spin.n }}"}
`

// testCrash lets a run that never rests be taken from its process.
func testCrash(t *testing.T, s Subject) {
	for _, lost := range []bool{false, true} {
		testCrashWith(t, s, lost)
	}
}

// testCrashWith does so with checkpoints or where they are lost.
func testCrashWith(t *testing.T, s Subject, lost bool) {
	t.Helper()
	st, g := s.Store(t), newGate()
	if st.Capabilities().Instant {
		t.Skip("ability: the store outlives the process")
	}
	var steps atomic.Int64
	p := program(t, busyLoop, funcType{"gate": g.pass, "step": func(c *node.Ctx) error {
		c.Output("value", steps.Add(1))
		return nil
	}})
	l := Open(t, st)
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	seizeLease(t, st, x)
	run, err := st.Run(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	near := &countingStore{Store: st}
	if lost {
		near.Store = withoutCheckpoints{st}
	}
	second := Open(t, near)
	close(g.open)
	if x, err = second.Resume(t.Context(), p, "r"); err != nil {
		t.Fatal(err)
	}
	r := drive(t, second, p, x, Script{})
	if v, _ := r.Outputs.Get("n"); r.Status != engine.Completed || v != int64(1500) || steps.Load() != 1500 {
		t.Errorf("got %+v after %d steps", r, steps.Load())
	}
	if n := near.read.Load(); lost && n != run.Events || !lost && n > 1500 {
		t.Errorf("%d of %d events were read, checkpoints lost: %v", n, run.Events, lost)
	}
}

// seizeLease takes a run from its process, which ends without leaving anything.
func seizeLease(t *testing.T, st Store, x *runner.Execution) {
	t.Helper()
	lease, err := st.Seize(t.Context(), x.ID, ownerOf(t, st, x.ID), "thief", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Wait(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("the first process ended with %v", err)
	}
	if err := st.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// testLongLoop runs a loop that never rests for very long.
func testLongLoop(t *testing.T, s Subject) {
	st := s.Store(t)
	if st.Capabilities().Instant {
		t.Skip("ability: the store outlives the process")
	}
	p := program(t, `
weir: 1
name: spinning
nodes:
  spin:
    type: loop
    with:
      until: outputs.n == 2000
      max: 1000000
      body:
        nodes:
          count: {type: transform, in: {index: "{{ inputs.index }}"}, with: {expr: inputs.index + 1}}
        outputs: {n: "{{ count.value }}"}
outputs: {n: "{{ spin.n }}"}
`, nil)
	l := Open(t, st)
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Wait(t.Context())
	if v, _ := r.Outputs.Get("n"); err != nil || r.Status != engine.Completed || v != int64(2000) {
		t.Fatalf("got %+v, %v", r, err)
	}
	run, err := st.Run(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	cp, err := store.Complete(st).Checkpoint(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if len(cp.Body) > 2000 || cp.Seq < run.Commits/2 {
		t.Errorf("the last checkpoint is as of commit %d of %d (%d events) and has %d bytes", cp.Seq, run.Commits, run.Events, len(cp.Body))
	}
}
