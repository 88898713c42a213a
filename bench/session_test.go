package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// answering says one sentence, whatever it is asked.
type answering struct{}

func (answering) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	return &llm.Response{
		Message: convo.Message{Role: convo.Assistant, Text: "Berth 4 is free until Friday; shall I keep it for you?"},
		Usage:   llm.Usage{Input: 100, Output: 12},
	}, nil
}

const sessionFlow = `
weir: 1
name: talk
context: {model: answering/one, budget: {window: 16000, reserve: 1000}}
inputs: {message: {type: text, required: true}}
nodes:
  %s
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
`

// aSession opens a session, with the flow that fills it where fill is set.
func aSession(b *testing.B, path, id string, fill bool) (*weir.Weir, *weir.Session) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"answering": answering{}}})
	if err != nil {
		b.Fatal(err)
	}
	more := ""
	if fill {
		var text strings.Builder
		for i := range 500 {
			fmt.Fprintf(&text, "{role: user, text: 'Visitor %d asks when the harbour office opens.'}, {role: assistant, text: 'It opens at eight, visitor %d.'}, ", i, i)
		}
		more = "fill: {type: injectMessages, after: answer, with: {messages: [" + text.String() + "]}}"
	}
	f, err := w.Parse("talk.yaml", fmt.Appendf(nil, sessionFlow, more))
	if err != nil {
		b.Fatal(err)
	}
	talk, err := w.Session(b.Context(), f, weir.SessionOptions{User: "u", Thread: id})
	if err != nil {
		b.Fatal(err)
	}
	return w, talk
}

func sayIn(b *testing.B, s *weir.Session) {
	b.Helper()
	turn, err := s.Send(b.Context(), "Is there a berth for a ship of 12 metres?", weir.SendOptions{})
	if err != nil {
		b.Fatal(err)
	}
	select {
	case <-turn.Done():
	case <-b.Context().Done():
	}
}

// grown is a database whose session has about so many messages.
func grown(b *testing.B, messages int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "weir.db")
	w, s := aSession(b, path, "t", messages >= 1000)
	for n := 0; n < messages; {
		sayIn(b, s)
		info, err := s.Info(b.Context())
		if err != nil || info.Length == n {
			b.Fatalf("%+v %v", info, err)
		}
		n = info.Length
	}
	if err := w.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	return path
}

func sizeOf(b *testing.B, path string) (n int64) {
	b.Helper()
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// BenchmarkSessionRound is one round, message to answer, of a session with few
// messages and of one with many: its time, the bytes that it leaves, and how long
// a process takes for its first.
func BenchmarkSessionRound(b *testing.B) {
	var short float64
	for _, messages := range []int{20, 100_000} {
		b.Run(fmt.Sprint("messages=", messages), func(b *testing.B) {
			path := grown(b, messages)
			before := sizeOf(b, path)
			began := time.Now()
			w, s := aSession(b, path, "t", false)
			sayIn(b, s)
			first := time.Since(began)
			b.ResetTimer()
			for b.Loop() {
				sayIn(b, s)
			}
			b.StopTimer()
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if err := w.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(sizeOf(b, path)-before)/float64(b.N+1), "B/round")
			b.ReportMetric(float64(first.Microseconds())/1000, "ms/first")
			if messages == 20 {
				short = each
			} else if short > 0 {
				b.ReportMetric(each/short, "x-of-20")
			}
		})
	}
}
