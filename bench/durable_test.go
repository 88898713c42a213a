package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store/sqlite"
)

// BenchmarkDurable measures a chain over SQLite, with commits that are synced and with
// sync normal, beside raw one-row commits in the same mode on the same disk, in turns, and
// reports the ratios: one run (a step is a commit of its own), and 64 runs at once (commits
// are gathered).
func BenchmarkDurable(b *testing.B) {
	for _, sync := range []sqlite.Sync{sqlite.SyncFull, sqlite.SyncNormal} {
		b.Run("sync="+sync.String(), func(b *testing.B) { benchmarkDurable(b, sync) })
	}
}

func benchmarkDurable(b *testing.B, mode sqlite.Sync) {
	b.Helper()
	const nodes, many = 200, 64
	ctx := context.Background()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{Sync: mode})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, weir.Options{Store: s})
	f := define(b, w, chain(nodes, "spawn"))
	raw := openRaw(b, mode)
	runOnce(ctx, b, w, f)
	raw.commit(b, nodes)
	var rawTime, oneTime, manyTime time.Duration
	var rawCPU, oneCPU, manyCPU time.Duration
	b.ResetTimer()
	for range b.N {
		before := cpuTime()
		rawTime += timed(func() { raw.commit(b, nodes) })
		rawCPU, before = rawCPU+cpuTime()-before, cpuTime()
		oneTime += timed(func() { runOnce(ctx, b, w, f) })
		oneCPU, before = oneCPU+cpuTime()-before, cpuTime()
		manyTime += timed(func() {
			var wg sync.WaitGroup
			for range many {
				wg.Go(func() { runOnce(ctx, b, w, f) })
			}
			wg.Wait()
		})
		manyCPU += cpuTime() - before
	}
	steps := float64(b.N * nodes)
	perRaw := float64(rawTime.Nanoseconds()) / steps
	perOne := float64(oneTime.Nanoseconds()) / steps
	perMany := float64(manyTime.Nanoseconds()) / steps / many
	b.ReportMetric(perRaw/1e3, "us/raw")
	b.ReportMetric(perOne/1e3, "us/step")
	b.ReportMetric(perMany/1e3, "us/step64")
	b.ReportMetric(perOne/perRaw, "step/raw")
	b.ReportMetric(perOne/perMany, "x64")
	b.ReportMetric(float64(rawCPU.Microseconds())/steps, "cpu-us/raw")
	b.ReportMetric(float64(oneCPU.Microseconds())/steps, "cpu-us/step")
	b.ReportMetric(float64(manyCPU.Microseconds())/steps/many, "cpu-us/step64")
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

// rawTable is a table that rows are put into, a commit each.
type rawTable struct {
	db  *sql.DB
	row int
}

func openRaw(b *testing.B, mode sqlite.Sync) *rawTable {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "raw.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous("+mode.String()+")&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := db.ExecContext(context.Background(), "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)"); err != nil {
		b.Fatal(err)
	}
	return &rawTable{db: db}
}

func (r *rawTable) commit(b *testing.B, n int) {
	b.Helper()
	for range n {
		r.row++
		body := fmt.Sprintf(`[{"type":"node.completed","node":"n%06d"},{"type":"node.started","node":"n%06d"}]`, r.row, r.row+1)
		if _, err := r.db.ExecContext(context.Background(), "INSERT INTO t VALUES (?, ?)", r.row, body); err != nil {
			b.Fatal(err)
		}
	}
}
