package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/memory"
)

// BenchmarkRecall looks in the memory of one of a hundred users, who have a hundred
// items each, and of one who has all ten thousand.
func BenchmarkRecall(b *testing.B) {
	for _, users := range []int{100, 1} {
		s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
		if err := fillMemory(b.Context(), s, users, 10_000); err != nil {
			b.Fatal(err)
		}
		for _, text := range []string{"", "berth 42", "what is the number of the berth that the user likes"} {
			b.Run(fmt.Sprintf("users=%d/query=%.9q", users, text), func(b *testing.B) { benchmarkQuery(b, s, text) })
		}
		b.Run(fmt.Sprintf("users=%d/write", users), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				w := memory.Write{Scope: userOf(0), Kind: memory.Fact, Key: "k", Text: fmt.Sprint("version ", n, " of a fact"), Now: time.UnixMilli(int64(n))}
				if _, err := s.Remember(b.Context(), w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkQuery(b *testing.B, s *Store, text string) {
	b.Helper()
	for b.Loop() {
		found, err := s.Recall(b.Context(), memory.Query{Scope: userOf(0), Text: text})
		if err != nil || found.Total == 0 {
			b.Fatal(found, err)
		}
	}
}

func userOf(n int) memory.Scope { return memory.Scope{Namespace: "shop", User: fmt.Sprint("user", n)} }

// fillMemory has users remember items in turn, in one commit.
func fillMemory(ctx context.Context, s *Store, users, items int) error {
	return s.write(ctx, "fill", func(ctx context.Context) error {
		r := memoryWriter{ctx, s.conn}
		for n := range items {
			num, err := r.scopeNumber(userOf(n % users))
			if err != nil {
				return err
			}
			w, err := memory.Write{
				Scope: userOf(n % users), Kind: memory.Fact, Now: time.UnixMilli(int64(n)),
				Text: fmt.Sprintf("The user has berth %d, and likes the number %d. It was said at %d.", n%97, n%89, n),
			}.Normalized()
			if err == nil {
				_, err = r.writeItem(num, &w)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
