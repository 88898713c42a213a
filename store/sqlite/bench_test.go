package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// chain appends the commits of a chain of nodes to one run.
type chain struct {
	run   string
	fence int64
	seq   int64
}

func newChain(tb testing.TB, s *Store, run string) *chain {
	tb.Helper()
	if err := s.Create(tb.Context(), store.NewRun{ID: run, Flow: "chain", Fingerprint: "f", At: time.UnixMilli(1)}); err != nil {
		tb.Fatal(err)
	}
	l, err := s.Acquire(tb.Context(), run, "me", time.Hour, time.UnixMilli(1))
	if err != nil {
		tb.Fatal(err)
	}
	return &chain{run, l.Fence, 0}
}

func (c *chain) next() store.Append {
	c.seq++
	return store.Append{
		Commit: engine.Commit{Run: c.run, Seq: c.seq, First: 2*c.seq - 1, At: 1_800_000_000_000 + c.seq, Events: []engine.Event{
			&engine.NodeCompleted{Path: fmt.Sprint("n", c.seq), Outputs: engine.Values{{Name: "out", Value: c.seq}}, Micros: 3},
			&engine.NodeStarted{Path: fmt.Sprint("n", c.seq+1)},
		}},
		Fence: c.fence,
		Head:  store.Head{Status: engine.Running},
	}
}

// BenchmarkAppend compares a step of a chain, and a step of each of 64 chains
// at once, with the raw thing: one row with the same JSON, inserted into a
// file with the same settings.
func BenchmarkAppend(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
		if _, err := s.conn.ExecContext(b.Context(), "CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
			b.Fatal(err)
		}
		raw, err := s.conn.PrepareContext(b.Context(), "INSERT INTO raw (id, body) VALUES (?, ?)")
		if err != nil {
			b.Fatal(err)
		}
		defer func(st *sql.Stmt) { _ = st.Close() }(raw)
		c := chain{run: "r"}
		for b.Loop() {
			a := c.next()
			text, err := engine.EncodeEvents(nil, a.Commit.Events)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := raw.ExecContext(b.Context(), a.Commit.Seq, string(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one", func(b *testing.B) { benchmarkGroup(b, 1) })
	b.Run("group64", func(b *testing.B) { benchmarkGroup(b, 64) })
}

func benchmarkGroup(b *testing.B, runs int) {
	s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
	var chains []*chain
	for i := range runs {
		chains = append(chains, newChain(b, s, fmt.Sprint("r", i)))
	}
	group := make([]store.Append, runs)
	for b.Loop() {
		for i, c := range chains {
			group[i] = c.next()
		}
		for _, err := range s.Append(b.Context(), group) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*runs), "ns/step")
}
