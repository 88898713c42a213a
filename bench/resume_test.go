package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// echoModel answers at once, and notes when it was asked.
type echoModel struct{ asked atomic.Int64 }

// Generate implements weir.Provider.
func (p *echoModel) Generate(_ context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	p.asked.Store(time.Now().UnixNano())
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: answer}, Stop: "end"}, nil
}

// answer is about as long as a chat's are.
const answer = "Whatever comes after comes before what comes after it. Ask for one thing more, and it will be said " +
	"in as many words as it takes, which is to say in no more than three hundred and a few letters, " +
	"since that is about how long an answer tends to be when somebody wants to know what comes next. So much for it."

// pausedRun is a conversation that waits for a person before every turn. The node
// mark notes when it started: it is the next one after the person's answer.
type pausedRun struct {
	path          string
	model         echoModel
	modelCalledAt atomic.Int64
	clock         func() int64 // processor time; nil is not measured
	used          int64        // of it, until then
	w             *weir.Weir
	file          *sqlite.Store
	ask           string // the open question
}

const pausedFlow = `
weir: 1
name: talk
context: {model: parrot/one, system: You repeat.}
inputs:
  answer: {type: text, required: true}
  turns: {type: number, required: true}
nodes:
  before:
    type: loop
    in: {turns: "{{ run.inputs.turns }}"}
    with:
      until: outputs.turn == inputs.turns
      max: 1000000
      body:
        nodes:
          say:
            type: injectMessages
            with:
              messages:
                - {role: user, text: "And now, what comes after what came before?"}
                - {role: assistant, text: "{{ run.inputs.answer }}"}
          count: {type: transform, after: say, in: {index: "{{ inputs.index }}"}, with: {expr: inputs.index + 1}}
        outputs: {turn: "{{ count.value }}"}
  chat:
    type: loop
    after: before
    with:
      until: "false"
      max: 1000000
      body:
        nodes:
          ask: {type: userInput, with: {history: true}}
          mark: {type: mark, after: ask}
          reply: {type: llmRequest, after: mark}
        outputs: {said: "{{ ask.text }}"}
`

// connect opens the file and a library on it.
func (k *pausedRun) connect(ctx context.Context) error {
	var err error
	if k.file, err = sqlite.Open(ctx, k.path, sqlite.Options{}); err != nil {
		return err
	}
	mark := weir.Func("mark", func(weir.Ctx, struct{}) (struct{}, error) {
		k.modelCalledAt.Store(time.Now().UnixNano())
		if k.clock != nil {
			k.used = k.clock() - k.used
		}
		return struct{}{}, nil
	})
	k.w, err = weir.Open(weir.Options{
		Store: k.file, Types: []weir.Type{mark},
		Providers: map[string]weir.Provider{"parrot": &k.model},
	})
	return err
}

func (k *pausedRun) open(b *testing.B) {
	b.Helper()
	if err := k.connect(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func (k *pausedRun) close(b *testing.B) {
	b.Helper()
	if err := k.w.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// start begins the conversation with n messages before the first question.
func (k *pausedRun) start(b *testing.B, n int) {
	b.Helper()
	k.path = filepath.Join(b.TempDir(), "weir.db")
	k.open(b)
	f, err := k.w.Parse("talk.yaml", []byte(pausedFlow))
	if err != nil {
		b.Fatal(err)
	}
	run, err := k.w.Start(b.Context(), f, weir.Start{ID: "talk", Inputs: map[string]any{"answer": answer, "turns": n / 2}})
	if err != nil {
		b.Fatal(err)
	}
	if err := k.wait(b.Context(), run); err != nil {
		b.Fatal(err)
	}
}

// wait waits for the next question.
func (k *pausedRun) wait(ctx context.Context, run *weir.Run) error {
	r, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	if r.Status != engine.Paused || len(r.Interrupts) != 1 {
		return fmt.Errorf("the run is %s and not paused at one question: %w", r.Status, r.Error)
	}
	k.ask = r.Interrupts[0].ID
	return nil
}

// answer answers the open question and returns how long it took until the next
// node started, and until the model was asked with the whole history.
func (k *pausedRun) answer(ctx context.Context) (next, model time.Duration, err error) {
	begin := time.Now().UnixNano()
	run, err := k.w.Answer(ctx, "talk", k.ask, "And now, what comes after what came before?", "bench")
	if err == nil {
		err = k.wait(ctx, run)
	}
	return time.Duration(k.modelCalledAt.Load() - begin), time.Duration(k.model.asked.Load() - begin), err
}

// BenchmarkResume measures the time from a person's answer to a paused run to
// the start of the next node, and to the model call behind it, which is given
// the whole history. "warm" is a process that had the run before and has let
// go of it; "reopened" opens the file again for each answer. x/100 is the ratio
// to the time at 100 messages, x/commit that to a plain commit of one row: three
// commits (the lease, the answer, the start) lie between answer and node.
func BenchmarkResume(b *testing.B) {
	for _, mode := range []string{"warm", "reopened"} {
		base := 0.0
		for _, n := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				ms := resume(b, n, mode == "reopened")
				if n == 100 {
					base = ms
				}
				if base > 0 {
					b.ReportMetric(ms/base, "x/100")
				}
			})
		}
	}
}

// resume takes b.N turns of a conversation of n messages and returns the median
// time to the next node, in milliseconds.
func resume(b *testing.B, n int, reopen bool) float64 {
	b.Helper()
	k := &pausedRun{}
	k.start(b, n)
	defer func() { k.close(b) }()
	var next, model []time.Duration
	b.ResetTimer()
	for range b.N {
		if reopen {
			b.StopTimer()
			k.close(b)
			k.open(b)
			b.StartTimer()
		}
		m, a, err := k.answer(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		next, model = append(next, m), append(model, a)
	}
	b.StopTimer()
	ms := median(next)
	b.ReportMetric(ms, "ms/next-node")
	b.ReportMetric(median(model), "ms/model-call")
	b.ReportMetric(ms/median(k.measureStore(b)), "x/commit")
	return ms
}

// measureStore times plain commits of one row into the same file.
func (k *pausedRun) measureStore(b *testing.B) []time.Duration {
	b.Helper()
	var took []time.Duration
	for i := range 50 {
		begin := time.Now()
		if err := k.file.CachePut(b.Context(), fmt.Sprint(i), "x", time.Time{}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	return took
}

// median is in milliseconds.
func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}
