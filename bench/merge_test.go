package bench

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// BenchmarkMerge adds members to one object of the state in a loop, one in each iteration, and reads the member before.
// ns/member stays the same as n grows.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{4000, 8000, 16_000, 32_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := open(b, weir.Options{})
			f, err := w.Parse("f.yaml", fmt.Appendf(nil, `
weir: 1
name: merges
state: {seen: {reducer: merge, initial: {n-1: 0}}}
nodes:
  l:
    type: loop
    with:
      max: %d
      body:
        nodes:
          t: {type: transform, in: {i: "{{ inputs.index }}"}, with: {state: {seen: "{('n' + string(inputs.i)): state.seen['n' + string(inputs.i - 1)]}"}}}
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
					b.Fatalf("%s: %v %v", r.Status, r.Error, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/member")
		})
	}
}
