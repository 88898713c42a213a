package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// longChat returns a session of so many rounds, without waiting for the disk.
func longChat(b *testing.B, rounds int) *chat {
	b.Helper()
	s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
	if _, err := s.conn.ExecContext(b.Context(), "PRAGMA synchronous = OFF"); err != nil {
		b.Fatal(err)
	}
	c := newChat(b, s, "s")
	for i := range rounds {
		c.round(b, fmt.Sprintf("Question %d, as long as what people ask.", i), fmt.Sprintf("Answer %d, which is about as long as what is answered when there is time.", i))
	}
	return c
}

// BenchmarkSession reads and continues sessions of 100 and of 50,000 rounds: 100
// messages in the middle, the session's row, and a round, which takes a message,
// makes a run and has two commits.
func BenchmarkSession(b *testing.B) {
	for _, rounds := range []int{100, 50_000} {
		c := longChat(b, rounds)
		ctx := b.Context()
		run := fmt.Sprintf("run-of-s-01hzx%06d", rounds)
		middle := store.Filter{Session: "s", Limit: 20, Before: fmt.Sprintf("run-of-s-01hzx%06d", rounds/2)}
		for _, x := range []struct {
			name string
			do   func(i int) (got, want int, err error)
		}{
			{"history", func(int) (int, int, error) {
				ms, err := c.s.SessionMessages(ctx, "s", rounds-50, rounds+50)
				return len(ms), 100, err
			}},
			{"of the last round", func(int) (int, int, error) {
				ms, err := c.s.Messages(ctx, run, "main", rounds-50, rounds+50)
				return len(ms), 100, err
			}},
			{"find", func(int) (int, int, error) {
				at, err := c.s.FindMessage(ctx, run, "main", "none/ask", 2*rounds)
				return at, -1, err
			}},
			{"row", func(int) (int, int, error) {
				x, err := c.s.Session(ctx, "s")
				return x.Length, 2 * rounds, err
			}},
			{"rounds listed", func(int) (int, int, error) {
				rs, err := c.s.Runs(ctx, middle)
				return len(rs), 20, err
			}},
			{"fork", func(i int) (int, int, error) {
				id := fmt.Sprint("fork", b.N, i)
				return 0, 0, c.s.Create(ctx, store.NewRun{ID: id, At: time.UnixMilli(1), Base: &store.Base{Run: run, Seq: 1}})
			}},
			{"round", func(int) (int, int, error) {
				c.round(b, "one more", "and an answer")
				return 0, 0, nil
			}},
		} {
			b.Run(fmt.Sprint(x.name, "/", rounds), func(b *testing.B) { repeat(b, x.do) })
		}
	}
}

// repeat does something as often as a benchmark wants.
func repeat(b *testing.B, do func(i int) (got, want int, err error)) {
	b.Helper()
	for i := 0; b.Loop(); i++ {
		if got, want, err := do(i); err != nil || got != want {
			b.Fatal(got, want, err)
		}
	}
}

// forkChain makes a chain of forks, each of which says add things, and returns
// the last.
func forkChain(b *testing.B, s *Store, deep, add int) string {
	b.Helper()
	ctx, run := b.Context(), "r"
	if err := s.Create(ctx, store.NewRun{ID: run, At: time.UnixMilli(1)}); err != nil {
		b.Fatal(err)
	}
	for i := range deep {
		l, err := s.Acquire(ctx, run, "me", time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		ch := &convo.Change{}
		for k := range add {
			n := i*add + k
			ch.Append = append(ch.Append, convo.Message{ID: fmt.Sprint("m", n), Role: convo.User, Text: fmt.Sprint("message ", n)})
		}
		c := engine.Commit{Run: run, Seq: int64(i + 1), First: int64(i + 1), Events: []engine.Event{
			&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Adds: add, Body: ch}}},
		}}
		if err := s.Append(ctx, []store.Append{{Commit: c, Fence: l.Fence}})[0]; err != nil {
			b.Fatal(err)
		}
		run = fmt.Sprint("fork", i)
		if err := s.Create(ctx, store.NewRun{ID: run, At: time.UnixMilli(1), Base: &store.Base{Run: c.Run, Seq: c.Seq}}); err != nil {
			b.Fatal(err)
		}
	}
	return run
}

// BenchmarkForks reads 100 messages, looks for one that is not there, and reads
// all commits, in a run at the end of a chain of forks each of which said
// something.
func BenchmarkForks(b *testing.B) {
	for _, deep := range []int{1, 1000} {
		s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
		if _, err := s.conn.ExecContext(b.Context(), "PRAGMA synchronous = OFF"); err != nil {
			b.Fatal(err)
		}
		add := max(1, 100/deep)
		n := deep * add
		run := forkChain(b, s, deep, add)
		b.Run(fmt.Sprint("messages/", deep), func(b *testing.B) {
			repeat(b, func(int) (int, int, error) {
				ms, err := s.Messages(b.Context(), run, "main", n-100, n)
				return len(ms), 100, err
			})
		})
		b.Run(fmt.Sprint("find/", deep), func(b *testing.B) {
			repeat(b, func(int) (int, int, error) {
				at, err := s.FindMessage(b.Context(), run, "main", "none", n)
				return at, -1, err
			})
		})
		b.Run(fmt.Sprint("commits/", deep), func(b *testing.B) {
			repeat(b, func(int) (k, want int, err error) {
				for _, err := range s.Commits(b.Context(), run, 0) {
					if err != nil {
						return k, deep, err
					}
					k++
				}
				return k, deep, nil
			})
		})
	}
}

// TestRoundSizeIsCloseToItsText measures a round of a session over the
// text of its two messages.
func TestRoundSizeIsCloseToItsText(t *testing.T) {
	const rounds = 700
	for bytes, most := range map[int]float64{40: 400, 900: 475, 2000: 900} {
		if testing.Short() && bytes != 900 {
			continue
		}
		path := filepath.Join(t.TempDir(), "weir.db")
		s := openAt(t, path, Options{})
		newChat(t, s, "seed").round(t, "a", "b")
		empty := closedSize(t, s)
		s = openAt(t, path, Options{})
		if _, err := s.conn.ExecContext(t.Context(), "PRAGMA synchronous = OFF"); err != nil {
			t.Fatal(err)
		}
		c := newChat(t, s, "s")
		words := &talk{Rand: rand.New(rand.NewPCG(1, 2))}
		for range rounds {
			c.round(t, words.words(bytes*2/5), words.words(bytes*3/5))
		}
		over := float64(closedSize(t, s)-empty-int64(rounds*bytes)) / rounds
		t.Logf("%5d B a round: %.0f B a round over it", bytes, over)
		if over > most {
			t.Errorf("%d B a round: %.0f B a round over the text, %.0f are allowed", bytes, over, most)
		}
	}
}

// BenchmarkDeleteSession deletes a session while another stays.
func BenchmarkDeleteSession(b *testing.B) {
	for _, rounds := range []int{500, 2_500} {
		b.Run(fmt.Sprint(rounds), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c := longChat(b, rounds)
				b.StartTimer()
				if _, err := c.s.DeleteSession(b.Context(), "s", store.DeleteOptions{Now: time.UnixMilli(1)}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*rounds), "us/round")
		})
	}
}
