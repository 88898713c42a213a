// Package runnertest is the conformance suite of runners: the local runner with any
// store, and the simulated one. A subject leaves nil what it cannot do, and each test
// that is skipped for that reason says so.
//
// It must not know the internals of a subject.
package runnertest

import (
	"context"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Store is what the suite needs of a store that several processes share.
type Store interface {
	runner.Store
	Post(ctx context.Context, p store.Post) error
	Inbox(ctx context.Context, run string) ([]store.Post, error)
}

// Subject is a way of running flows.
type Subject struct {
	// Run runs a program from its start until the run has ended or waits for
	// answers that the script does not give.
	Run func(t *testing.T, p *runner.Program, b runner.StartOptions, s Script) RunResult
	// Store makes an empty store for Locals to share; nil for a subject that
	// lives in one process.
	Store func(t *testing.T) Store
}

// Script is what people do during a run.
type Script struct {
	// Answer answers an interrupt, or leaves it open.
	Answer func(i engine.Interrupt) (engine.Value, bool)
	// Commands are carried out as they come; nil is none.
	Commands chan runner.Command
}

// RunResult is what came of a run.
type RunResult struct {
	runner.Result
	Commits []engine.Commit
}

// Run holds a subject to the suite.
func Run(t *testing.T, s Subject) {
	t.Run("OneRun", func(t *testing.T) { testOneRun(t, s) })
	t.Run("Processes", func(t *testing.T) {
		if s.Store == nil {
			t.Skip("ability: several processes share a store")
		}
		testProcesses(t, s)
	})
}

// Sim returns the simulated runner with a seed, with crashes and store faults.
func Sim(seed uint64) Subject {
	return Subject{Run: func(t *testing.T, p *runner.Program, b runner.StartOptions, s Script) RunResult {
		sim := &runner.Sim{Seed: seed, Crash: 0.02, Fault: 0.05, Answer: s.Answer, Command: func(*engine.Run) runner.Command {
			select {
			case c := <-s.Commands:
				return c
			default:
				return nil
			}
		}}
		report, err := sim.Run(p, runner.Services{}, b)
		if err != nil {
			t.Fatal(err)
		}
		return RunResult{Result: report.Result, Commits: report.Commits}
	}}
}

// Local returns the local runner on stores that newStore makes.
func Local(newStore func(t *testing.T) Store) Subject {
	return Subject{Store: newStore, Run: func(t *testing.T, p *runner.Program, b runner.StartOptions, s Script) RunResult {
		st := newStore(t)
		l := Open(t, st)
		x, err := l.Start(t.Context(), p, b)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case c := <-s.Commands:
					if _, err := l.Do(t.Context(), p, b.ID, c); err != nil {
						t.Error(err)
					}
				case <-stop:
					return
				}
			}
		}()
		return RunResult{Result: drive(t, l, p, x, s), Commits: journal(t, st, b.ID)}
	}}
}

// drive answers and resumes until nothing is left to answer.
func drive(t *testing.T, l *runner.Local, p *runner.Program, x *runner.Execution, s Script) runner.Result {
	t.Helper()
	for {
		r, err := x.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answered := false
		for _, i := range r.Interrupts {
			if s.Answer == nil {
				break
			}
			v, ok := s.Answer(i)
			if !ok {
				continue
			}
			if x, err = l.Do(t.Context(), p, x.ID, runner.Answer(i.ID, v, "somebody")); err != nil {
				t.Fatal(err)
			}
			answered = true
		}
		if !answered {
			return r
		}
	}
}

// journal returns a run's record.
func journal(t *testing.T, s Store, id string) []engine.Commit {
	t.Helper()
	var out []engine.Commit
	for c, err := range s.Commits(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}
