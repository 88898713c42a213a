package weirkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store/sqlite"
)

// OpenSession returns the active session of user anna with a flow.
func OpenSession(t *testing.T, w *weir.Weir, f *weir.Flow) *weir.Session {
	t.Helper()
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// RepeatingModel answers with the number of messages it was sent and the text of the
// last one.
type RepeatingModel struct {
	// Sent, if set, is called with each request.
	Sent func(*llm.Request)
}

// Generate implements weir.Provider.
func (e *RepeatingModel) Generate(_ context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if e.Sent != nil {
		e.Sent(r)
	}
	last := r.Messages[len(r.Messages)-1].Text
	text := fmt.Sprintf("%d: %s", len(r.Messages), last)
	emit(llm.Chunk{Text: text})
	return &llm.Response{
		Message: convo.Message{Role: convo.Assistant, Text: text}, Usage: llm.Usage{Input: 10, Output: 2},
	}, nil
}

// TalkFlow is a flow for sessions: one model call answers each message.
const TalkFlow = `
weir: 1
name: talk
context: {model: echo/m}
inputs:
  message: {type: text, required: true}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// OpenTalk opens a Weir with the provider echo and parses a flow. The store is a SQLite
// file at path, or memory if path is "".
func OpenTalk(t *testing.T, path string, p weir.Provider, text string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	o := weir.Options{Providers: map[string]weir.Provider{"echo": p}}
	if path != "" {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Store = s
	}
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	f, err := w.Parse("talk.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

// SendAndWait sends a message to a session and waits for the reply.
func SendAndWait(t *testing.T, s *weir.Session, message any, o weir.SendOptions) session.ReplyState {
	t.Helper()
	turn, err := s.Send(t.Context(), message, o)
	if err != nil {
		t.Fatal(err)
	}
	state, err := turn.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}
