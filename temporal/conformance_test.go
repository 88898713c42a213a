//go:build linux

package temporal_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/runner/runnertest"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/temporal"
)

// TestTemporalRunner holds runs on Temporal to the suite of runners. The part about processes that share a store without a
// scheduler between them is for the local runner; the tests of this package take its place.
func TestTemporalRunner(t *testing.T) {
	runnertest.Run(t, runnertest.Subject{Run: runOnTemporal})
}

func runOnTemporal(t *testing.T, p *runner.Program, b runner.StartOptions, s runnertest.Script) runnertest.RunResult {
	t.Helper()
	w := newWorld(t)
	st := store.Complete(memory.New())
	known := func(context.Context, string) (*runner.Program, error) { return p, nil } //nolint:unparam // the type of runner.Options.Program
	open := func(change func(o *runner.Options)) *runner.Local {
		o := runner.Options{Store: st, Runner: temporal.Name, Program: known, RecordedProgram: known, Poll: 5 * time.Millisecond, Rest: 5 * time.Millisecond}
		change(&o)
		l := runner.NewLocal(o)
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		return l
	}
	c, err := temporal.Dial(t.Context(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	k := temporal.NewWorker(open(func(*runner.Options) {}), c, temporal.WorkerOptions{})
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	ref := runner.RunRef{ID: b.ID, Flow: p.Flow.Name}
	t.Cleanup(func() { // the runs of the suite have the same id
		k.Stop()
		_ = w.sdk().TerminateWorkflow(context.Background(), b.ID, "", "the test has ended")
		_ = c.Close()
	})
	record := open(func(o *runner.Options) { o.RecordOnly, o.Rest = true, 0 })
	x, err := record.Start(t.Context(), p, b)
	if err == nil {
		_, err = x.Wait(t.Context())
	}
	if err == nil {
		err = c.Wake(t.Context(), ref, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	g := &remoteRun{t, c, st, record, p, ref}
	return g.drive(s)
}

// remoteRun is a run of the suite.
type remoteRun struct {
	t     *testing.T
	c     *temporal.Client
	store *store.Full
	local *runner.Local
	p     *runner.Program
	ref   runner.RunRef
}

// deliver sends a message as weir.Weir does.
func (g *remoteRun) deliver(post store.Post) {
	g.t.Helper()
	post.Run, post.At = g.ref.ID, time.Now()
	if err := g.store.Post(g.t.Context(), post); err != nil {
		g.t.Fatal(err)
	}
	posts, err := g.store.Inbox(g.t.Context(), g.ref.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	post.ID = posts[len(posts)-1].ID
	if err := g.c.Deliver(g.t.Context(), g.ref, post); err != nil {
		g.t.Fatal(err)
	}
}

// drive carries out the script until the run has ended or asks what the script leaves open.
func (g *remoteRun) drive(s runnertest.Script) runnertest.RunResult {
	g.t.Helper()
	for {
		select {
		case c := <-s.Commands:
			v := g.inspect()
			e, err := c(v.Run)
			if cancel, ok := e.(*engine.CancelRequested); ok && err == nil {
				g.deliver(store.Post{Kind: "cancel", By: cancel.By})
			}
		default:
		}
		row, err := g.store.Run(g.t.Context(), g.ref.ID)
		if err != nil {
			g.t.Fatal(err)
		}
		rests := row.Owner == "" && (row.Head.Status.Ended() || row.Head.Status == engine.Paused)
		if !rests {
			pause(g.t.Context(), 5*time.Millisecond)
			continue
		}
		v := g.inspect()
		if !g.answer(v, s) {
			r := v.Run
			return runnertest.RunResult{
				Result:  runner.Result{Run: r.ID, Status: r.Status(), Outputs: r.Outputs(), Interrupts: r.Interrupts(), Usage: r.Usage(), Error: r.Failure()},
				Commits: v.Commits,
			}
		}
	}
}

func (g *remoteRun) answer(v *runner.RunView, s runnertest.Script) (answered bool) {
	for _, i := range v.Run.Interrupts() {
		if s.Answer == nil {
			return false
		}
		if value, ok := s.Answer(i); ok {
			g.deliver(store.Post{Kind: "answer", Name: i.ID, Value: value, By: "somebody"})
			answered = true
		}
	}
	return answered
}

func (g *remoteRun) inspect() *runner.RunView {
	g.t.Helper()
	v, err := g.local.Inspect(g.t.Context(), g.p, g.ref.ID, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	return v
}
