//go:build unix

package postgres

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/pgtest"
)

// BenchmarkCommit measures durable commits of one writer with a connection, and of several that
// share 8, with the bytes that each adds to the server's log and to its tables.
func BenchmarkCommit(b *testing.B) {
	server := pgtest.Start(b)
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprint("connections=", writers), func(b *testing.B) {
			s := openAt(b, server.Schema(b), Options{MaxConnections: writers})
			defer reportBytes(b, server)()
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

// BenchmarkRawCommit measures what Weir is compared with: a transaction that inserts one row of the size of a commit.
func BenchmarkRawCommit(b *testing.B) {
	server := pgtest.Start(b)
	s := openAt(b, server.Schema(b), Options{MaxConnections: 1})
	if _, err := s.pool.Exec(b.Context(), "CREATE TABLE raw (n bigint PRIMARY KEY, payload bytea NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	defer reportBytes(b, server)()
	payload := []byte(`[{"type":"effect.completed","key":"k","result":"result 1000"}]`)
	for n := 0; b.Loop(); n++ {
		if _, err := s.pool.Exec(b.Context(), "INSERT INTO raw (n, payload) VALUES ($1, $2)", n, payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcesses measures durable commits of processes that write to runs of their own.
func BenchmarkProcesses(b *testing.B) {
	server := pgtest.Start(b)
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint("processes=", n), func(b *testing.B) {
			url := server.Schema(b)
			openAt(b, url, Options{})
			acknowledged := make(chan struct{}, 1024)
			var writers []*writerProcess
			for i := range n {
				writers = append(writers, startWriter(b, url, fmt.Sprint("run", i), "", acknowledged))
			}
			for range 20 * n { // until all have begun
				<-acknowledged
			}
			start, count := time.Now(), 0
			for b.Loop() {
				<-acknowledged
				count++
			}
			b.ReportMetric(float64(count)/time.Since(start).Seconds(), "commits/s")
			stopWriters(b, writers, acknowledged)
		})
	}
}

// stopWriters ends processes and waits for them.
func stopWriters(b *testing.B, writers []*writerProcess, acknowledged chan struct{}) {
	b.Helper()
	go func() {
		for range acknowledged { // what comes until they have stopped
		}
	}()
	for _, w := range writers {
		_ = w.stdin.Close()
		<-w.ended
		if err := w.cmd.Wait(); err != nil {
			b.Error(err)
		}
	}
	close(acknowledged)
}

// reportBytes reports the bytes of the server's log and of the database for each operation since it was called.
func reportBytes(b *testing.B, server *pgtest.Server) func() {
	b.Helper()
	read := func() (log, size float64) {
		log, _ = strconv.ParseFloat(server.SQL(b, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"), 64)
		size, _ = strconv.ParseFloat(server.SQL(b, "SELECT pg_database_size(current_database())"), 64)
		return log, size
	}
	log, size := read()
	start := time.Now()
	return func() {
		seconds := time.Since(start).Seconds()
		newLog, newSize := read()
		b.ReportMetric((newLog-log)/float64(b.N), "log-B/op")
		b.ReportMetric((newSize-size)/float64(b.N), "table-B/op")
		b.ReportMetric(float64(b.N)/seconds, "commits/s")
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
