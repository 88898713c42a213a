package bench

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// BenchmarkAppend appends to a key of the state in a loop. ns/append stays the same as
// n grows.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{4000, 8000, 16_000, 32_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := open(b, weir.Options{})
			f, err := w.Parse("f.yaml", fmt.Appendf(nil, `
weir: 1
name: appends
state: {votes: {reducer: append, initial: []}}
nodes:
  l: {type: loop, with: {max: %d, body: {nodes: {t: {type: transform, with: {state: {votes: "'yes'"}}}}}}}
`, n))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				run, err := w.Start(b.Context(), f, weir.Start{})
				if err != nil {
					b.Fatal(err)
				}
				if r, err := run.Wait(b.Context()); err != nil || r.Status != engine.Completed {
					b.Fatalf("%s: %v", r.Status, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/append")
		})
	}
}
