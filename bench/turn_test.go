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
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// turnBench is a conversation with a history before its first turn. The words of
// every message differ, so that the store cannot keep them once.
type turnBench struct {
	path   string
	size   int // bytes of a message
	window int // tokens
	said   int // messages made so far
	file   *sqlite.Store
	w      *weir.Weir
	ask    string        // the open question, where a person answers
	asked  chan struct{} // the model was asked
	answer chan struct{} // and may answer
	sent   int           // messages in the last request
}

// turnsFlow is a loop of a message and the model's answer; %[1]s is the
// node that says it and %[2]d the window.
const turnsFlow = `
weir: 1
name: turns
context: {model: scripted/one, system: You repeat., budget: {window: %[2]d, reserve: 1000}}
inputs: {before: {type: number, required: true}, text: {type: text, required: true}}
nodes:
  before:
    type: loop
    with:
      until: outputs.left <= 0
      max: 1000000
      body:
        nodes:
          fill: {type: fill, in: {left: "{{ run.inputs.before - inputs.index * 1000 }}"}}
        outputs: {left: "{{ fill.left }}"}
  chat:
    type: loop
    after: before
    with:
      until: "false"
      max: 1000000
      body:
        nodes:
          ask: %[1]s
          reply: {type: llmRequest, after: ask}
        outputs: {said: "{{ reply.text }}"}
`

// Whoever says something in a turn: a preset text, so that the run stays in
// memory, or a person, for whom it waits.
const (
	running  = `{type: manualInput, in: {n: "{{ inputs.index }}"}, with: {history: true, text: "{{ inputs.n }} {{ run.inputs.text }}"}}`
	answered = `{type: userInput, with: {history: true}}`
)

// Generate implements weir.Provider.
func (t *turnBench) Generate(ctx context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	t.sent = len(r.Messages)
	if t.asked != nil {
		select {
		case t.asked <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case <-t.answer:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: t.nextText()}, Stop: "end"}, nil
}

// nextText returns a message unlike any other.
func (t *turnBench) nextText() string {
	t.said++
	var b strings.Builder
	for i := 0; b.Len() < t.size; i++ {
		fmt.Fprintf(&b, "%s %d ", [...]string{"the", "weir", "holds", "water", "back"}[i%5], t.said*(i+7))
	}
	return b.String()[:t.size]
}

type fillIn struct {
	Left float64 `weir:"left"`
}

type fillOut struct {
	Left float64 `weir:"left"`
}

// fill adds up to 1,000 messages to the context.
func (t *turnBench) fill(ctx weir.Ctx, in fillIn) (fillOut, error) {
	m, err := ctx.Context()
	if err != nil {
		return fillOut{}, err
	}
	var ms []convo.Message
	for i := range int(max(min(in.Left, 1000), 0)) {
		ms = append(ms, convo.Message{Role: []convo.Role{convo.User, convo.Assistant}[i%2], Text: t.nextText()})
	}
	_, err = m.AddAll(ms)
	return fillOut{in.Left - 1000}, err
}

func (t *turnBench) start(b *testing.B, says string, before int) {
	b.Helper()
	t.path = filepath.Join(b.TempDir(), "weir.db")
	var err error
	if t.file, err = sqlite.Open(b.Context(), t.path, sqlite.Options{}); err != nil {
		b.Fatal(err)
	}
	t.w, err = weir.Open(weir.Options{
		Store: t.file, Providers: map[string]weir.Provider{"scripted": t},
		Types: []weir.Type{weir.Func("fill", t.fill).WritesContext()},
	})
	if err != nil {
		b.Fatal(err)
	}
	f, err := t.w.Parse("turns.yaml", fmt.Appendf(nil, turnsFlow, says, t.window))
	if err != nil {
		b.Fatal(err)
	}
	if says == running {
		t.asked, t.answer = make(chan struct{}), make(chan struct{})
	}
	run, err := t.w.Start(b.Context(), f, weir.Start{ID: "turns", Inputs: map[string]any{"before": before, "text": t.nextText()[:t.size-5]}})
	if err != nil {
		b.Fatal(err)
	}
	if t.asked == nil {
		t.wait(b, run)
		return
	}
	ended := make(chan string, 1)
	go func() {
		r, err := run.Wait(context.Background())
		ended <- fmt.Sprint("the run ended: ", r.Status, r.Error, err)
	}()
	select {
	case <-t.asked:
	case why := <-ended:
		b.Fatal(why)
	}
}

func (t *turnBench) close(b *testing.B) {
	b.Helper()
	if err := t.w.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// wait waits for the next question.
func (t *turnBench) wait(b *testing.B, run *weir.Run) {
	b.Helper()
	r, err := run.Wait(b.Context())
	if err != nil || r.Status != engine.Paused || len(r.Interrupts) != 1 {
		b.Fatal("the run is ", r.Status, " and not paused at one question: ", r.Error, err)
	}
	t.ask = r.Interrupts[0].ID
}

// turn takes one turn: from the model's answer until it is asked again, or from
// a person's answer until the next question.
func (t *turnBench) turn(b *testing.B) {
	b.Helper()
	if t.asked != nil {
		t.answer <- struct{}{}
		<-t.asked
		return
	}
	run, err := t.w.Answer(b.Context(), "turns", t.ask, t.nextText(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	t.wait(b, run)
}

// BenchmarkTurn measures a turn of a conversation with a history of so many
// messages over SQLite at synchronous=FULL, for a view that is cut at a window of
// 8,000 tokens and for one of 128,000. Running is a loop that needs no person to
// answer, two commits a turn; answered is a run that is paused before each turn,
// left and resumed. A turn of a conversation that has had ten, and two raw
// commits of one row, are taken by turns with it: x/turn10 and x/raw are the
// ratios of the medians, cpu/turn10 that of the processor time.
func BenchmarkTurn(b *testing.B) {
	for _, mode := range []struct{ name, says string }{{"running", running}, {"answered", answered}} {
		for _, window := range []int{8000, 128_000} {
			for _, size := range []int{120, 900} {
				for _, n := range []int{2000, 20_000, 100_000} {
					b.Run(fmt.Sprintf("%s/%dk/%dB/%d", mode.name, window/1000, size, n), func(b *testing.B) {
						measureTurns(b, turnBench{window: window, size: size}, mode.says, n)
					})
				}
			}
		}
	}
}

// sample is what turns took.
type sample struct {
	took []time.Duration
	cpu  time.Duration
}

func (s *sample) measure(f func()) {
	before := cpuTime()
	s.took = append(s.took, timed(f))
	s.cpu += cpuTime() - before
}

func measureTurns(b *testing.B, like turnBench, says string, n int) {
	b.Helper()
	long, short, raw := like, like, openRaw(b, sqlite.SyncFull)
	long.start(b, says, n)
	for range 4 { // the first view is recomputed
		long.turn(b)
	}
	var at, ten, plain sample
	for i := 0; b.Loop(); i++ {
		at.measure(func() { long.turn(b) })
		b.StopTimer()
		if i%5 == 0 {
			if i > 0 {
				short.close(b)
			}
			short = like
			short.start(b, says, 0)
			for range 7 {
				short.turn(b)
			}
		}
		ten.measure(func() { short.turn(b) })
		plain.measure(func() { raw.commit(b, 2) })
		b.StartTimer()
	}
	b.StopTimer()
	short.close(b)
	long.close(b)
	count := float64(len(at.took))
	ms := median(at.took)
	b.ReportMetric(ms, "ms/turn")
	b.ReportMetric(ms/median(ten.took), "x/turn10")
	b.ReportMetric(ms/median(plain.took), "x/raw")
	b.ReportMetric(float64(at.cpu.Microseconds())/count, "cpu-us/turn")
	b.ReportMetric(float64(at.cpu)/float64(ten.cpu), "cpu/turn10")
	b.ReportMetric(float64(long.sent), "sent")
}

// BenchmarkTurnBytes measures what a turn takes in the file, after closing,
// relative to its text: x/text, and B/over-text a turn.
func BenchmarkTurnBytes(b *testing.B) {
	for _, mode := range []struct{ name, says string }{{"running", running}, {"answered", answered}} {
		for _, size := range []int{20, 120, 445, 450, 900, 4000} {
			b.Run(fmt.Sprintf("%s/%dB", mode.name, 2*size), func(b *testing.B) {
				measureTurnBytes(b, mode.says, size)
			})
		}
	}
}

func measureTurnBytes(b *testing.B, says string, size int) {
	b.Helper()
	const turn = 300
	var used [2]int64
	for b.Loop() {
		for i := range used {
			used[i] = bytesAfter(b, turnBench{window: 128_000, size: size}, says, turn*(i+1))
		}
	}
	a := float64(used[1]-used[0]) / turn
	b.ReportMetric(a/float64(2*size), "x/text")
	b.ReportMetric(a-float64(2*size), "B/over-text")
}

// bytesAfter returns how large the file is, after closing, where n turns were taken.
func bytesAfter(b *testing.B, t turnBench, says string, n int) int64 {
	b.Helper()
	t.start(b, says, 0)
	for range n {
		t.turn(b)
	}
	t.close(b)
	info, err := os.Stat(t.path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
