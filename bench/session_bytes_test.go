package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store/sqlite"
)

// roundsFlow is what a session of BenchmarkRoundBytes runs: one model call a
// round.
const roundsFlow = `
weir: 1
name: rounds
context: {model: scripted/one, system: You repeat., budget: {window: 16000, reserve: 1000}}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// BenchmarkRoundBytes measures what a round of a session takes in the file, after
// closing, relative to its text: x/text, and B/over-text a round. The ids are those
// that Weir makes.
func BenchmarkRoundBytes(b *testing.B) {
	for _, size := range []int{20, 120, 445, 450, 900, 4000} {
		b.Run(fmt.Sprintf("%dB", 2*size), func(b *testing.B) {
			const rounds = 1000
			var used [2]int64
			for b.Loop() {
				for i := range used {
					used[i] = bytesAfterRounds(b, size, rounds*(i+1)/2)
				}
			}
			a := float64(used[1]-used[0]) / (rounds / 2)
			b.ReportMetric(a/float64(2*size), "x/text")
			b.ReportMetric(a-float64(2*size), "B/over-text")
		})
	}
}

// bytesAfterRounds returns how large the file is, after closing, where a session had n
// rounds whose messages have so many bytes.
func bytesAfterRounds(b *testing.B, size, n int) int64 {
	b.Helper()
	path := filepath.Join(b.TempDir(), "weir.db")
	file, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	says := &turnBench{size: size}
	w, err := weir.Open(weir.Options{Store: file, Providers: map[string]weir.Provider{"scripted": says}})
	if err != nil {
		b.Fatal(err)
	}
	f, err := w.Parse("rounds.yaml", []byte(roundsFlow))
	if err != nil {
		b.Fatal(err)
	}
	s, err := w.Session(b.Context(), f, weir.SessionOptions{User: "u"})
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		turn, err := s.Send(b.Context(), says.nextText(), weir.SendOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := turn.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
