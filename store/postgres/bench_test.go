//go:build unix

package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

// BenchmarkCommit measures durable commits of one writer with a connection, and of several that
// share 8.
func BenchmarkCommit(b *testing.B) {
	server := pgtest.Start(b)
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprint("connections=", writers), func(b *testing.B) {
			s := openAt(b, server.Schema(b), Options{MaxConnections: writers})
			b.SetParallelism(writers) // times GOMAXPROCS
			var runs atomic.Int64
			if writers == 1 {
				if err := appendWhile(b, s, "r", b.Loop); err != nil {
					b.Fatal(err)
				}
				return
			}
			b.RunParallel(func(p *testing.PB) {
				if err := appendWhile(b, s, fmt.Sprint("r", runs.Add(1)), p.Next); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// appendWhile appends commits to a run as long as more says so.
func appendWhile(b *testing.B, s *Store, run string, more func() bool) error {
	b.Helper()
	w, err := newTestWriter(s, run)
	for more() {
		if err == nil {
			err = w.append(b.Context())
		}
	}
	return err
}
