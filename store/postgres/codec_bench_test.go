//go:build unix

package postgres

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// processorTime returns the processor time of this process in microseconds, without that of the server.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

// BenchmarkContents measures what a commit costs in each form of contents: the processor time of the process, and the
// bytes in the log and the tables of the server.
func BenchmarkContents(b *testing.B) {
	server := pgtest.Start(b)
	key := masterKey(b, 1)
	for _, size := range []int{100, 4000} {
		for _, form := range []struct {
			name  string
			codec *codec.Codec
		}{
			{"plain", nil},
			{"compressed", codec.New(codec.Options{Compress: true})},
			{"encrypted", codec.New(codec.Options{Key: &key})},
			{"both", codec.New(codec.Options{Compress: true, Key: &key})},
		} {
			b.Run(fmt.Sprintf("bytes=%d/%s", size, form.name), func(b *testing.B) {
				s := openAt(b, server.Schema(b), Options{MaxConnections: 1, Codec: form.codec})
				w, err := newTestWriter(s, "r")
				if err != nil {
					b.Fatal(err)
				}
				text := proseOf(size)
				defer reportBytes(b, server)()
				before := processorTime(b)
				for b.Loop() {
					n := w.seq + 1
					a := store.Append{
						Commit: engine.Commit{Run: w.lease.Run, Seq: n, First: n, At: n, Events: []engine.Event{
							&engine.EffectCompleted{Key: "k", Result: fmt.Sprint(n, text)},
						}},
						Fence: w.lease.Fence, Head: store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}},
					}
					if err := s.Append(b.Context(), []store.Append{a})[0]; err != nil {
						b.Fatal(err)
					}
					w.seq = n
				}
				b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-us/op")
			})
		}
	}
}

// proseOf returns a text that compresses as prose does: words in a pseudo-random order.
func proseOf(size int) string {
	words := strings.Fields(`the runner commits events of a node that has completed and a store keeps them for as long as nobody deletes the session
		what a model answered is durable before anything that depends on it leaves this process while people wait for their answers in parallel branches`)
	var b strings.Builder
	for n := uint32(7); b.Len() < size; {
		n = n*1664525 + 1013904223
		b.WriteString(words[int(n>>16)%len(words)] + " ")
	}
	return b.String()[:size]
}
