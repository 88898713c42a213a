package trajectory_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/trajectory"
)

// BenchmarkLanes adds a node to each of many branches, which takes the same for each
// however many there are.
func BenchmarkLanes(b *testing.B) {
	for _, lanes := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprint(lanes), func(b *testing.B) {
			for b.Loop() {
				r, _, err := trajectory.NewRecorderPool(nil, nil).Open(b.Context(), trajectory.Key{Session: "s", Round: 1})
				if err != nil {
					b.Fatal(err)
				}
				query, _ := r.Add(trajectory.NewNode{Type: trajectory.Query})
				for range lanes {
					if _, err := r.Add(trajectory.NewNode{Type: trajectory.Action, After: []trajectory.ID{query}}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lanes), "ns/node")
		})
	}
}
