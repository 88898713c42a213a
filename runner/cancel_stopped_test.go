package runner_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/memory"
)

// stallingModel never answers, and counts its calls.
type stallingModel struct {
	calls atomic.Int64
	begun chan struct{}
}

func (m *stallingModel) Generate(ctx context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	m.calls.Add(1)
	select {
	case m.begun <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return &llm.Response{Message: convo.Message{Role: convo.Assistant}}, ctx.Err()
}

// A tree whose process stopped in the middle of a model call of a child is cancelled by another process.
func TestCancellingATreeThatWasStoppedRepeatsNoCall(t *testing.T) {
	for range 20 {
		shared, m := weirkit.SharedMemory{Store: memory.New()}, &stallingModel{begun: make(chan struct{}, 1)}
		open := func() *weir.Weir {
			w, err := weir.Open(weir.Options{Store: shared, Providers: map[string]weir.Provider{"p": m}})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		first := open()
		child := weirkit.Parse(t, first, "weir: 1\nname: child\ncontext: {model: p/m}\nnodes: {ask: {type: llmRequest, in: {message: hello}}}\noutputs: {text: \"{{ ask.text }}\"}\n")
		f, err := first.Parse("main.yaml", []byte("weir: 1\nname: main\nnodes: {sub: {type: flow, with: {flow: child}}}\noutputs: {text: \"{{ sub.text }}\"}\n"), child)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Start(t.Context(), f, weir.Start{ID: "r"}); err != nil {
			t.Fatal(err)
		}
		<-m.begun
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := open()
		r, err := second.Cancel(t.Context(), "r", "ann", "enough")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Wait(t.Context()); err != nil || got.Status != weir.Cancelled {
			t.Fatal(got.Status, err)
		}
		if n := m.calls.Load(); n != 1 {
			t.Fatalf("the model was called %d times", n)
		}
		if err := second.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
