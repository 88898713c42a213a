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

// longChat is a session of so many rounds, without waiting for the disk.
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
		b.Run(fmt.Sprint("history/", rounds), func(b *testing.B) {
			for b.Loop() {
				if ms, err := c.s.SessionMessages(ctx, "s", rounds-50, rounds+50); err != nil || len(ms) != 100 {
					b.Fatal(len(ms), err)
				}
			}
		})
		b.Run(fmt.Sprint("of the last round/", rounds), func(b *testing.B) {
			run := fmt.Sprintf("run-of-s-01hzx%06d", rounds)
			for b.Loop() {
				if ms, err := c.s.Messages(ctx, run, "main", rounds-50, rounds+50); err != nil || len(ms) != 100 {
					b.Fatal(len(ms), err)
				}
			}
		})
		b.Run(fmt.Sprint("find/", rounds), func(b *testing.B) {
			run := fmt.Sprintf("run-of-s-01hzx%06d", rounds)
			for b.Loop() {
				if at, err := c.s.FindMessage(ctx, run, "main", "none/ask", 2*rounds); err != nil || at != -1 {
					b.Fatal(at, err)
				}
			}
		})
		b.Run(fmt.Sprint("row/", rounds), func(b *testing.B) {
			for b.Loop() {
				if x, err := c.s.Session(ctx, "s"); err != nil || x.Length < 2*rounds {
					b.Fatal(x, err)
				}
			}
		})
		b.Run(fmt.Sprint("rounds listed/", rounds), func(b *testing.B) {
			for b.Loop() {
				if rs, err := c.s.Runs(ctx, store.Filter{Session: "s", Limit: 20, Before: fmt.Sprintf("run-of-s-01hzx%06d", rounds/2)}); err != nil || len(rs) != 20 {
					b.Fatal(len(rs), err)
				}
			}
		})
		b.Run(fmt.Sprint("fork/", rounds), func(b *testing.B) {
			run := fmt.Sprintf("run-of-s-01hzx%06d", rounds)
			for i := 0; b.Loop(); i++ {
				if err := c.s.Create(ctx, store.NewRun{ID: fmt.Sprint("fork", b.N, i), At: time.UnixMilli(1), Base: &store.Base{Run: run, Seq: 1}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("round/", rounds), func(b *testing.B) {
			for b.Loop() {
				c.round(b, "one more", "and an answer")
			}
		})
	}
}

// BenchmarkForks reads 100 messages, and looks for one that is not there, in a
// run at the end of a chain of forks each of which said something.
func BenchmarkForks(b *testing.B) {
	for _, deep := range []int{1, 1000} {
		s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
		if _, err := s.conn.ExecContext(b.Context(), "PRAGMA synchronous = OFF"); err != nil {
			b.Fatal(err)
		}
		ctx, run := b.Context(), "r"
		if err := s.Create(ctx, store.NewRun{ID: run, At: time.UnixMilli(1)}); err != nil {
			b.Fatal(err)
		}
		n := 0
		for i := range deep {
			l, err := s.Acquire(ctx, run, "me", time.Hour, time.UnixMilli(1))
			if err != nil {
				b.Fatal(err)
			}
			add := 1 + 100/deep
			ch := &convo.Change{}
			for range add {
				ch.Append = append(ch.Append, convo.Message{ID: fmt.Sprint("m", n), Role: convo.User, Text: fmt.Sprint("message ", n)})
				n++
			}
			c := engine.Commit{Run: run, Seq: int64(i + 1), First: int64(i + 1), Events: []engine.Event{
				&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Adds: add, Body: ch}}},
			}}
			if err := s.Append(ctx, []store.Append{{Commit: c, Fence: l.Fence}})[0]; err != nil {
				b.Fatal(err)
			}
			next := fmt.Sprint("fork", i)
			if err := s.Create(ctx, store.NewRun{ID: next, At: time.UnixMilli(1), Base: &store.Base{Run: run, Seq: int64(i + 1)}}); err != nil {
				b.Fatal(err)
			}
			run = next
		}
		b.Run(fmt.Sprint("messages/", deep), func(b *testing.B) {
			for b.Loop() {
				if ms, err := s.Messages(ctx, run, "main", n-100, n); err != nil || len(ms) != 100 {
					b.Fatal(len(ms), err)
				}
			}
		})
		b.Run(fmt.Sprint("find/", deep), func(b *testing.B) {
			for b.Loop() {
				if at, err := s.FindMessage(ctx, run, "main", "none", n); err != nil || at != -1 {
					b.Fatal(at, err)
				}
			}
		})
		b.Run(fmt.Sprint("commits/", deep), func(b *testing.B) {
			for b.Loop() {
				k := 0
				for _, err := range s.Commits(ctx, run, 0) {
					if err != nil {
						b.Fatal(err)
					}
					k++
				}
				if k != deep {
					b.Fatal(k)
				}
			}
		})
	}
}

// TestARoundTakesLittleMoreRoomThanItsText measures a round of a session over the
// text of its two messages.
func TestARoundTakesLittleMoreRoomThanItsText(t *testing.T) {
	const rounds = 700
	for _, bytes := range []int{40, 900, 2000} {
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
		if over > 1000 {
			t.Errorf("%d B a round: %.0f B a round over the text", bytes, over)
		}
	}
}
