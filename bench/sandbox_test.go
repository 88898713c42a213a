package bench

import (
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

// BenchmarkSandbox measures a run of Python code in a sandbox next to the bare
// interpreter, by turns, so that both have the machine's same mood: the least and
// the median of each, in microseconds.
func BenchmarkSandbox(b *testing.B) {
	e, bare := pythonToMeasure(b)
	for _, shape := range []struct{ name, code string }{
		{"pass", "pass"},
		{"assign", "context['total'] = sum(context['items'])"},
		{"json", "import json\nprint(json.dumps({'context_updates': {'total': sum(context['items'])}}))"},
	} {
		b.Run(shape.name, func(b *testing.B) {
			job := &sandbox.Job{Code: shape.code, Context: map[string]any{"items": []any{int64(1), int64(2)}}}
			var alone, inside []time.Duration
			for b.Loop() {
				began := time.Now()
				runPythonDirectly(b, bare)
				alone = append(alone, time.Since(began))
				began = time.Now()
				if _, err := e.Run(b.Context(), job); err != nil {
					b.Fatal(err)
				}
				inside = append(inside, time.Since(began))
			}
			slices.Sort(alone)
			slices.Sort(inside)
			for _, at := range []struct {
				name string
				i    int
			}{{"least", 0}, {"median", len(alone) / 2}} {
				b.ReportMetric(float64(alone[at.i].Microseconds()), at.name+"-us/bare")
				b.ReportMetric(float64(inside[at.i].Microseconds()), at.name+"-us/run")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSandboxThroughput runs as many jobs at once as there are cores, next to
// the bare interpreter.
func BenchmarkSandboxThroughput(b *testing.B) {
	e, bare := pythonToMeasure(b)
	rate := func(b *testing.B, run func()) {
		b.Helper()
		b.SetParallelism(1)
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				run()
				n.Add(1)
			}
		})
		b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "runs/s")
		b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
	}
	b.Run("bare", func(b *testing.B) { rate(b, func() { runPythonDirectly(b, bare) }) })
	b.Run("sandbox", func(b *testing.B) {
		job := &sandbox.Job{Code: "context['a'] = 1"}
		rate(b, func() {
			if _, err := e.Run(b.Context(), job); err != nil {
				b.Error(err)
			}
		})
	})
}

func pythonToMeasure(b *testing.B) (*python.Executor, string) {
	b.Helper()
	e := python.New(python.Options{})
	r, err := e.Run(b.Context(), &sandbox.Job{Code: "import sys\nprint(sys.executable)"})
	if err != nil {
		b.Skipf("no Python can be isolated here: %v", err)
	}
	return e, r.Stdout[:len(r.Stdout)-1]
}

func runPythonDirectly(b *testing.B, path string) {
	b.Helper()
	if err := exec.CommandContext(b.Context(), path, "-I", "-S", "-B", "-c", "pass").Run(); err != nil {
		b.Error(err)
	}
}
