package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
)

// BenchmarkShortRun measures runs of three nodes on SQLite, one after the other and 64 at once:
// with pure nodes, which take one commit, and with a model call between two of them, which
// takes two. Raw commits, one row each, follow each series in the same process.
func BenchmarkShortRun(b *testing.B) {
	for _, c := range []struct{ name, middle string }{
		{"pure", "{type: pure, after: a}"},
		{"model", "{type: llmRequest, after: a, in: {message: hello}}"},
	} {
		for _, parallel := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", c.name, parallel), func(b *testing.B) {
				s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{})
				if err != nil {
					b.Fatal(err)
				}
				w := open(b, weir.Options{Store: s, Providers: map[string]weir.Provider{"p": &answerModel{}}})
				f, err := w.Parse("short.yaml", []byte("weir: 1\nname: short\ncontext: {model: p/m}\nnodes:\n  a: {type: pure}\n  b: "+c.middle+"\n  c: {type: pure, after: b}\n"))
				if err != nil {
					b.Fatal(err)
				}
				shortRuns(b, w, f, parallel)
			})
		}
	}
}

func shortRuns(b *testing.B, w *weir.Weir, f *weir.Flow, parallel int) {
	b.Helper()
	const series = 1000
	raw := openRaw(b, sqlite.SyncFull)
	var runsTook, rawTook, runsCPU, rawCPU float64
	for b.Loop() {
		before := cpuTime()
		runsTook += timed(func() { runParallel(b, w, f, series, parallel) }).Seconds()
		between := cpuTime()
		rawTook += timed(func() { raw.commit(b, series) }).Seconds()
		runsCPU, rawCPU = runsCPU+(between-before).Seconds(), rawCPU+(cpuTime()-between).Seconds()
	}
	n := float64(b.N * series)
	b.ReportMetric(n/runsTook, "runs/s")
	b.ReportMetric(n/rawTook, "raw/s")
	b.ReportMetric(runsCPU/n*1e6, "cpu-us/run")
	b.ReportMetric(rawCPU/n*1e6, "cpu-us/raw")
}

// runParallel runs a flow n times, a number of runs at once.
func runParallel(b *testing.B, w *weir.Weir, f *weir.Flow, n, parallel int) {
	b.Helper()
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for range n / parallel {
				if err := runShort(b.Context(), w, f); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func runShort(ctx context.Context, w *weir.Weir, f *weir.Flow) error {
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		return err
	}
	r, err := run.Wait(ctx)
	if err == nil && r.Status != engine.Completed {
		err = fmt.Errorf("run %s is %s", run.ID, r.Status)
	}
	return err
}
