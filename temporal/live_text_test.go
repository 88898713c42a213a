//go:build linux

package temporal_test

import (
	"context"
	"iter"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/temporal"
)

// streamedModel streams half of its answer, and the rest when it is released.
type streamedModel struct {
	release chan struct{}
}

func (m *streamedModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	emit(llm.Chunk{Text: "one "})
	select {
	case <-m.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	emit(llm.Chunk{Text: "two"})
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "one two"}}, nil
}

const streamed = `
weir: 1
name: streamed
context: {model: held/m}
inputs: {message: {type: text, required: true}}
nodes:
  a: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {text: "{{ a.text }}"}
`

// TestLiveTextLeavesTheWorker reads the text of a call in the process that started the run, in one that follows it and in
// one that has sent a message to a session, before the call has ended.
func TestLiveTextLeavesTheWorker(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "PostgreSQL" {
				s := pgtest.Start(t)
				w.database = s.URL(s.Address(), "")
			}
			checkLiveTextLeavesTheWorker(t, w)
		})
	}
}

func checkLiveTextLeavesTheWorker(t *testing.T, w *world) {
	t.Helper()
	m := &streamedModel{make(chan struct{})}
	w.providers = map[string]weir.Provider{"held": m}
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	run := w.start(x, w.flow(x, streamed), weir.Start{Inputs: map[string]any{"message": "hi"}})
	reply, err := w.session(x, streamed, weir.SessionOptions{}).Send(t.Context(), "hi", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for who, items := range map[string]iter.Seq2[weir.Item, error]{
		"the process that started the run": run.Events(ctx), "one that follows it": w.client().Follow(ctx, run.ID, ""),
		"the one that has sent a message": reply.Items(ctx),
	} {
		if text := firstText(t, items); text != "one " {
			t.Errorf("%s has the text %q", who, text)
		}
	}
	close(m.release)
	w.wait(run, weir.Completed)
	w.reply(reply, weir.Completed)
}

// firstText returns the first text of a stream.
func firstText(t *testing.T, items iter.Seq2[weir.Item, error]) string {
	t.Helper()
	for it, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		if it.Chunk != nil && it.Chunk.Text != "" {
			return it.Chunk.Text
		}
	}
	return ""
}
