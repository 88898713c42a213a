package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	if err := s.Create(tb.Context(), store.NewRun{ID: run, Flow: "chain", Fingerprint: "f", At: time.UnixMilli(1_800_000_000_000)}); err != nil {
		tb.Fatal(err)
	}
	l, err := s.Acquire(tb.Context(), run, "me", time.Hour)
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

// BenchmarkAppendRatio takes turns between a step and the raw thing, so that
// what else the machine does meets both alike, and compares the medians.
func BenchmarkAppendRatio(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
	if _, err := s.conn.ExecContext(b.Context(), "CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	raw, err := s.conn.PrepareContext(b.Context(), "INSERT INTO raw (id, body) VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	c := newChain(b, s, "r")
	var plain, ours []float64
	for b.Loop() {
		a := c.next()
		begin := time.Now()
		text, err := engine.EncodeEvents(nil, a.Commit.Events)
		if err == nil {
			_, err = raw.ExecContext(b.Context(), a.Commit.Seq, string(text))
		}
		middle := time.Now()
		if err = errors.Join(append(s.Append(b.Context(), []store.Append{a}), err)...); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, float64(middle.Sub(begin)))
		ours = append(ours, float64(time.Since(middle)))
	}
	slices.Sort(plain)
	slices.Sort(ours)
	b.ReportMetric(ours[len(ours)/2]/plain[len(plain)/2], "x-raw")
	b.ReportMetric(plain[len(plain)/2], "raw-ns")
}

func benchmarkGroup(b *testing.B, runs int) {
	b.Helper()
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

// BenchmarkRead reads back a conversation of 10,000 messages.
func BenchmarkRead(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
	if _, err := s.conn.ExecContext(b.Context(), "PRAGMA synchronous = OFF"); err != nil {
		b.Fatal(err)
	}
	t := newTalk(b, s)
	for range 5000 {
		t.say(b, t.words(100), t.words(300))
	}
	for _, n := range []int{256, 10000} {
		b.Run(fmt.Sprint("messages", n), func(b *testing.B) {
			for b.Loop() {
				if ms, err := s.Messages(b.Context(), "r", "main", 10000-n, 10000); err != nil || len(ms) != n {
					b.Fatal(len(ms), err)
				}
			}
		})
		b.Run(fmt.Sprint("commits", n), func(b *testing.B) { benchmarkCommits(b, s, n) })
	}
	b.Run("findUnknownMessage", func(b *testing.B) {
		for b.Loop() {
			if at, err := s.FindMessage(b.Context(), "r", "main", "nobody", 10000); err != nil || at != -1 {
				b.Fatal(at, err)
			}
		}
	})
}

// benchmarkCommits reads the last n of 10,001 commits.
func benchmarkCommits(b *testing.B, s *Store, n int) {
	b.Helper()
	for b.Loop() {
		read := 0
		for _, err := range s.Commits(b.Context(), "r", int64(10001-n)) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
		if read != n {
			b.Fatal(read)
		}
	}
}
