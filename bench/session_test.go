package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// answerModel says one sentence, whatever it is asked.
type answerModel struct {
	called func() // nil if it is not needed
}

func (a *answerModel) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	if a.called != nil {
		a.called()
	}
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

// openSession opens a session, with the flow that fills it where fill is set.
func openSession(b *testing.B, path, id string, fill bool) (*weir.Weir, *weir.Flow, *weir.Session) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"answering": &answerModel{}}})
	if err != nil {
		b.Fatal(err)
	}
	more := ""
	if fill {
		more = fillNode()
	}
	f, err := w.Parse("talk.yaml", fmt.Appendf(nil, sessionFlow, more))
	if err != nil {
		b.Fatal(err)
	}
	talk, err := w.Session(b.Context(), f, weir.SessionOptions{User: "u", Thread: id})
	if err != nil {
		b.Fatal(err)
	}
	return w, f, talk
}

// fillNode is a node that adds 1,000 messages to the history.
func fillNode() string {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "{role: user, text: 'Visitor %d asks when the harbour office opens.'}, {role: assistant, text: 'It opens at eight, visitor %d.'}, ", i, i)
	}
	return "fill: {type: injectMessages, after: answer, with: {messages: [" + text.String() + "]}}"
}

func sendMessage(b *testing.B, s *weir.Session) {
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

// storeWithHistory returns a database whose session has about so many messages.
func storeWithHistory(b *testing.B, messages int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "weir.db")
	w, _, s := openSession(b, path, "t", messages >= 1000)
	for n := 0; n < messages; {
		sendMessage(b, s)
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

// sessionBench is an open session whose rounds are timed.
type sessionBench struct {
	w      *weir.Weir
	f      *weir.Flow
	s      *weir.Session
	path   string
	before int64         // bytes
	first  time.Duration // to open it and have a round
	took   []time.Duration
}

func newSessionBench(b *testing.B, path string) *sessionBench {
	b.Helper()
	t := &sessionBench{path: path, before: sizeOf(b, path)}
	began := time.Now()
	t.w, t.f, t.s = openSession(b, path, "t", false)
	sendMessage(b, t.s)
	t.first = time.Since(began)
	return t
}

func (t *sessionBench) round(b *testing.B) {
	b.Helper()
	began := time.Now()
	sendMessage(b, t.s)
	t.took = append(t.took, time.Since(began))
}

// medianRound returns how long half of the rounds took at most.
func (t *sessionBench) medianRound() float64 {
	slices.Sort(t.took)
	return float64(t.took[len(t.took)/2].Microseconds()) / 1000
}

// reopen begins another conversation, so that a short one stays short.
func (t *sessionBench) reopen(b *testing.B) {
	b.Helper()
	s, err := t.w.Session(b.Context(), t.f, weir.SessionOptions{User: "u", New: true})
	if err != nil {
		b.Fatal(err)
	}
	t.s = s
}

// BenchmarkSessionRound is one of the first 20 rounds of a session, message to
// answer, and one of a session with 100,000 messages, in turns, so that what else
// the machine does is the same for both: their times, the bytes that the long one
// leaves, and how long a process takes for its first.
func BenchmarkSessionRound(b *testing.B) {
	short, long := newSessionBench(b, storeWithHistory(b, 20)), newSessionBench(b, storeWithHistory(b, 100_000))
	for n := 0; b.Loop(); n++ {
		if n%20 == 0 {
			short.reopen(b)
		}
		short.round(b)
		long.round(b)
	}
	for _, t := range []*sessionBench{short, long} {
		if err := t.w.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(short.medianRound(), "ms/round-1-to-20")
	b.ReportMetric(long.medianRound(), "ms/round-of-100000")
	b.ReportMetric(long.medianRound()/short.medianRound(), "x-of-20")
	b.ReportMetric(float64(sizeOf(b, long.path)-long.before)/float64(b.N+1), "B/round")
	b.ReportMetric(float64(short.first.Microseconds())/1000, "ms/first-of-20")
	b.ReportMetric(float64(long.first.Microseconds())/1000, "ms/first-of-100000")
}
