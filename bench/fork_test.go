package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir"
)

// BenchmarkFork measures the time to fork a paused conversation where it stands,
// until the fork is paused at the same question, and the commits that it writes.
// x/10 is the ratio to the time at 10 messages.
func BenchmarkFork(b *testing.B) {
	base := 0.0
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ms := forkHistory(b, n)
			if n == 10 {
				base = ms
			}
			if base > 0 {
				b.ReportMetric(ms/base, "x/10")
			}
		})
	}
}

// forkHistory forks a conversation of n messages b.N times and returns the median
// time, in milliseconds.
func forkHistory(b *testing.B, n int) float64 {
	b.Helper()
	k := &pausedRun{}
	k.start(b, n)
	defer func() { k.close(b) }()
	row, err := k.file.Run(b.Context(), "talk")
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("fork", i)
		begin := time.Now()
		run, _, err := k.w.Fork(b.Context(), "talk", weir.ForkOptions{ID: id, At: row.Events})
		if err != nil {
			b.Fatal(err)
		}
		if err := k.wait(b.Context(), run); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if i == 0 {
			fork, err := k.file.Run(b.Context(), id)
			if err != nil {
				b.Fatal(err)
			}
			if fork.Base == nil || fork.Commits-fork.Base.Seq != 1 {
				b.Fatalf("the fork has %d commits over its base %+v", fork.Commits, fork.Base)
			}
		}
	}
	ms := median(took)
	b.ReportMetric(ms, "ms/fork")
	return ms
}
