package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
)

// BenchmarkForkOfLargeRun forks a chain whose nodes each write a commit before its last node, and
// runs the fork to its end: the processor time for each node of the chain, in relation to that of
// the run.
func BenchmarkForkOfLargeRun(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				forkLargeRun(b, n)
			}
		})
	}
}

func forkLargeRun(b *testing.B, n int) {
	b.Helper()
	ctx := b.Context()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, weir.Options{Store: s})
	f := define(b, w, chain(n, "spawn"))
	complete := func(run *weir.Run, err error) error {
		if err != nil {
			return err
		}
		r, err := run.Wait(ctx)
		if err == nil && r.Status != engine.Completed {
			err = fmt.Errorf("the run %s: %w", r.Status, r.Error)
		}
		return err
	}
	begin := cpuTime()
	run, err := w.Start(ctx, f, weir.Start{})
	if err := complete(run, err); err != nil {
		b.Fatal(err)
	}
	whole := cpuTime() - begin
	v, err := w.Inspect(ctx, run.ID, 0)
	if err != nil {
		b.Fatal(err)
	}
	begin = cpuTime()
	fork, plan, err := w.Fork(ctx, run.ID, weir.ForkOptions{At: v.Run.Events() - 3})
	if err := complete(fork, err); err != nil {
		b.Fatal(err)
	}
	took := cpuTime() - begin
	if plan == nil || fork.ID == run.ID {
		b.Fatal("there is no fork")
	}
	b.ReportMetric(float64(whole.Microseconds())/float64(n), "run-us/node")
	b.ReportMetric(float64(took.Microseconds())/float64(n), "fork-us/node")
	b.ReportMetric(float64(took)/float64(whole), "fork/run")
}
