package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
)

// refusingModel answers after it has refused once, and then waits if so configured.
type refusingModel struct {
	refused bool
	waits   chan struct{}
}

func (m *refusingModel) Generate(ctx context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	if m.waits != nil {
		close(m.waits)
		m.waits = nil
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !m.refused {
		m.refused = true
		return nil, &llm.Error{Code: "model_invalid_request", Message: "not now", Err: errors.New("no")}
	}
	last := r.Messages[len(r.Messages)-1]
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "about " + last.Text}, Stop: "end"}, nil
}

func TestUserMessageStaysWhenRoundFailsOrIsCancelled(t *testing.T) {
	t.Parallel()
	stores(t, checkKeptMessages)
}

func checkKeptMessages(t *testing.T, path string) {
	t.Helper()
	m := &refusingModel{}
	w, f := weirkit.OpenTalk(t, path, m, weirkit.TalkFlow)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	failed := weirkit.SendAndWait(t, s, "first", weir.SendOptions{})
	if failed.Status != engine.Failed || len(failed.Messages) != 1 {
		t.Fatalf("%s with %d messages", failed.Status, len(failed.Messages))
	}
	wantTexts(t, s, "user first")
	run, err := w.OverrideNode(t.Context(), failed.Run, "retry", "answer", nil, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error, err)
	}
	wantTexts(t, s, "user first", "assistant about first")

	waits := make(chan struct{})
	m.waits = waits
	turn, err := s.Send(t.Context(), "second", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	if err := turn.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if end, err := turn.Wait(t.Context()); err != nil || end.Status != engine.Cancelled {
		t.Fatal(end.Status, err)
	}
	wantTexts(t, s, "user first", "assistant about first", "user second")
	weirkit.SendAndWait(t, s, "third", weir.SendOptions{})
	wantTexts(t, s, "user first", "assistant about first", "user second", "user third", "assistant about third")
}

func wantTexts(t *testing.T, s *weir.Session, want ...string) {
	t.Helper()
	if got := textsOf(t, s); !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
}
