//go:build unix

package bench

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/weir-run/weir/store/sqlite"
)

// usage returns what this process has used so far: microseconds of processor time and switches
// between threads.
func usage(b *testing.B) (micros, switches float64) {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3, float64(u.Nvcsw + u.Nivcsw)
}

// BenchmarkRoundCost measures rounds of a session alone, each next to three raw commits: the
// processor time of both, their times, and the context switches of a round.
func BenchmarkRoundCost(b *testing.B) {
	for _, messages := range []int{20, 100_000} {
		b.Run(fmt.Sprint(messages), func(b *testing.B) {
			t, raw := newSessionBench(b, storeWithHistory(b, messages)), openRaw(b, sqlite.SyncFull)
			for range 10 {
				t.round(b)
				raw.commit(b, 3)
			}
			t.took = nil
			var rounds, commits, switches float64
			var rawTook sample
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if messages < 1000 && n%20 == 0 {
					b.StopTimer()
					t.reopen(b)
					t.round(b)
					t.took = t.took[:len(t.took)-1]
					b.StartTimer()
				}
				cpu, cs := usage(b)
				t.round(b)
				afterRound, csAfter := usage(b)
				b.StopTimer()
				rawTook.measure(func() { raw.commit(b, 3) })
				afterRaw, _ := usage(b)
				b.StartTimer()
				rounds, commits, switches = rounds+afterRound-cpu, commits+afterRaw-afterRound, switches+csAfter-cs
			}
			n := float64(b.N)
			ms := t.medianRound()
			b.ReportMetric(rounds/n, "cpu-us/round")
			b.ReportMetric(commits/n, "cpu-us/3-raw")
			b.ReportMetric(switches/n, "switches/round")
			b.ReportMetric(ms, "ms/round")
			b.ReportMetric(ms/median(rawTook.took), "x/3-raw")
			if err := t.w.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
