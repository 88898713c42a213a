package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/trajectory/draw"
)

// BenchmarkLarge measures the processor time of large runs on SQLite per node: executing
// them, and each way of reading them. A cost that does not grow with the size of the run
// shows the same figure at each size. B/node is what the process keeps of a finished node.
func BenchmarkLarge(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		for _, c := range []struct {
			name string
			flow func() weir.Definition
			n    int
		}{
			{"chain", func() weir.Definition { return chain(n, "spawn") }, n},
			{"fan", func() weir.Definition { return fan(n, "spawn") }, n},
			{"chainPure", func() weir.Definition { return chain(n, "pure") }, n},
			{"forEach", func() weir.Definition { return iterations("forEach", n/2) }, n / 2},
			{"loop", func() weir.Definition { return iterations("loop", n/10) }, n / 10},
		} {
			b.Run(fmt.Sprint(c.name, c.n), func(b *testing.B) {
				for range b.N {
					largeRun(b, c.flow(), c.n)
				}
			})
		}
	}
}

// iterations returns a flow whose only node repeats a body n times.
func iterations(typ string, n int) weir.Definition {
	with := map[string]any{"body": map[string]any{
		"nodes": map[string]any{"work": map[string]any{"type": "spawn", "in": map[string]any{"in": "{{ inputs.index }}"}}},
	}}
	spec := weir.NodeSpec{Type: typ, With: with}
	if typ == "loop" {
		with["max"] = n
	} else {
		items := make([]any, n)
		for i := range items {
			items[i] = "x"
		}
		spec.In = map[string]any{"items": items}
	}
	return weir.Definition{Name: typ, Nodes: map[string]weir.NodeSpec{"all": spec}}
}

func largeRun(b *testing.B, d weir.Definition, n int) {
	b.Helper()
	ctx := b.Context()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, weir.Options{Store: s})
	f := define(b, w, d)
	before := liveHeap()
	var run *weir.Run
	measure(b, "run", n, func() error {
		if run, err = w.Start(ctx, f, weir.Start{}); err == nil {
			_, err = run.Wait(ctx)
		}
		return err
	})
	b.ReportMetric(max(0, float64(liveHeap())-float64(before))/float64(n), "B/node")
	measure(b, "timeline", n, func() error {
		v, err := w.Inspect(ctx, run.ID, 0)
		if err == nil {
			history.NewTimeline(v)
		}
		return err
	})
	measure(b, "chain", n, func() error {
		for _, err := range w.Chain(ctx, run.ID) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	measure(b, "verify", n, func() error {
		r, err := audit.Verify(ctx, s, audit.Options{})
		if err == nil && !r.OK {
			err = fmt.Errorf("verify: %v", r.Findings)
		}
		return err
	})
	measure(b, "fork", n, func() error { return planFork(ctx, w, run.ID) })
	measure(b, "trajectory", n, func() error {
		g, err := w.Trajectory(ctx, run.ID, 0)
		if err == nil {
			draw.Outline(g)
		}
		return err
	})
}

// planFork plans a fork at the last event but one, which shares nearly all of the past.
func planFork(ctx context.Context, w *weir.Weir, id string) error {
	v, err := w.Inspect(ctx, id, 0)
	if err == nil {
		_, err = w.PlanFork(ctx, id, weir.ForkOptions{At: v.Run.Events() - 1})
	}
	return err
}

// measure reports the processor time of an operation per node.
func measure(b *testing.B, name string, n int, do func() error) {
	b.Helper()
	before := cpuTime()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(n), name+"-us/node")
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
