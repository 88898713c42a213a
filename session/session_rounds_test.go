package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// blockedModel answers when it is let.
type blockedModel struct {
	weirkit.RepeatingModel
	called, open chan struct{}
}

func newBlockedModel() *blockedModel {
	return &blockedModel{called: make(chan struct{}, 100), open: make(chan struct{}, 100)}
}

func (g *blockedModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	g.called <- struct{}{}
	select {
	case <-g.open:
		return g.RepeatingModel.Generate(ctx, r, emit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func send(t *testing.T, s *weir.Session, message any, o weir.SendOptions) *weir.Reply {
	t.Helper()
	turn, err := s.Send(t.Context(), message, o)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func await(t *testing.T, turn *weir.Reply) session.ReplyState {
	t.Helper()
	state, err := turn.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestMessageDuringRoundQueuesRejectsOrForks(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		g := newBlockedModel()
		w, f := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		first := send(t, s, "one", weir.SendOptions{})
		<-g.called
		queued := send(t, s, "two", weir.SendOptions{})
		if _, err := s.Send(t.Context(), "no", weir.SendOptions{Busy: flow.BusyReject}); !errors.Is(err, store.ErrBusy) {
			t.Error(err)
		}
		fork := send(t, s, "aside", weir.SendOptions{Busy: flow.BusyFork})
		if fork.Session.ID == s.ID {
			t.Error("it is not in a fork")
		}
		<-g.called
		for range 3 {
			g.open <- struct{}{}
		}
		if a, b := await(t, first), await(t, queued); a.Round != 1 || b.Round != 2 || b.Text != "3: two" {
			t.Errorf("%+v %+v", a, b)
		}
		if aside := await(t, fork); aside.Text != "1: aside" {
			t.Error(aside.Text)
		}
		if got := textsOf(t, s); len(got) != 4 {
			t.Error(got)
		}
		active := weirkit.OpenSession(t, w, f)
		info, err := fork.Session.Info(t.Context())
		if err != nil || info.Parent != s.ID || active.ID != s.ID {
			t.Errorf("%+v %v, active %s", info, err, active.ID)
		}
	})
}

func TestOneOfManyRejectingSendersSucceeds(t *testing.T) {
	t.Parallel()
	g := newBlockedModel()
	w, f := weirkit.OpenTalk(t, "", g, strings.Replace(weirkit.TalkFlow, "inputs:", "session: {busy: reject}\ninputs:", 1))
	s := weirkit.OpenSession(t, w, f)
	var wg sync.WaitGroup
	turns := make([]*weir.Reply, 16)
	for i := range turns {
		wg.Go(func() {
			var err error
			if turns[i], err = s.Send(t.Context(), fmt.Sprint(i), weir.SendOptions{}); err != nil && !errors.Is(err, store.ErrBusy) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	g.open <- struct{}{}
	heard := 0
	for _, turn := range turns {
		if turn != nil {
			await(t, turn)
			heard++
		}
	}
	if got := textsOf(t, s); heard != 1 || len(got) != 2 {
		t.Errorf("%d were heard: %v", heard, got)
	}
}

func TestMessageSentTwiceIsAddedOnce(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		g := newBlockedModel()
		w, f := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		o := weir.SendOptions{ID: "m1"}
		a := send(t, s, "hello", o)
		<-g.called
		b := send(t, s, "hello", o)
		g.open <- struct{}{}
		if x, y := await(t, a), await(t, b); x.Run != y.Run || x.Text != y.Text {
			t.Errorf("%+v\n%+v", x, y)
		}
		if again := await(t, send(t, s, "hello", o)); again.Run != a.Run() || again.Text != "1: hello" || len(again.Messages) != 2 {
			t.Errorf("%+v", again)
		}
		if got := textsOf(t, s); len(got) != 2 {
			t.Error(got)
		}
		other, err := w.Session(t.Context(), f, weir.SessionOptions{User: "bert"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Send(t.Context(), "hello", o); !errors.Is(err, store.ErrExists) {
			t.Error(err)
		}
	})
}

const askFlow = `
weir: 1
name: ask
context: {model: echo/m}
nodes:
  name: {type: userInput, with: {prompt: "Your name?"}}
  age: {type: userInput, after: name, with: {prompt: "Your age?", schema: {type: integer, minimum: 0}}}
  answer: {type: llmRequest, in: {message: "{{ name.text }} is {{ age.value }}"}}
outputs: {answer: "{{ answer.text }}"}
`

func TestNextMessageAnswersRoundQuestion(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, askFlow)
		s := weirkit.OpenSession(t, w, f)
		first := weirkit.SendAndWait(t, s, "Ada", weir.SendOptions{}) // the flow's first question
		if first.Status.String() != "paused" || len(first.Interrupts) != 1 || first.Interrupts[0].Prompt != "Your age?" {
			t.Fatalf("%+v", first)
		}
		if _, err := s.Send(t.Context(), "old", weir.SendOptions{}); !errors.Is(err, runner.ErrAnswer) {
			t.Fatal(err)
		}
		if info, err := s.Info(t.Context()); err != nil || info.Queued != 0 || info.Rounds != 1 {
			t.Fatalf("%+v %v", info, err)
		}
		second := weirkit.SendAndWait(t, s, "36", weir.SendOptions{ID: "age"})
		if second.Run != first.Run || second.Text != "1: Ada is 36" || second.Round != 1 || len(second.Messages) != 2 {
			t.Fatalf("%+v", second)
		}
		if again := weirkit.SendAndWait(t, s, "36", weir.SendOptions{ID: "age"}); again.Run != first.Run {
			t.Fatalf("an answer that is sent twice: %+v", again)
		}
		if third := weirkit.SendAndWait(t, s, "Bert", weir.SendOptions{}); third.Round != 2 || third.Interrupts[0].Prompt != "Your age?" {
			t.Fatalf("%+v", third)
		}
	})
}

const breakFlow = `
weir: 1
name: wait
context: {model: echo/m}
inputs: {message: {type: text, required: true}}
nodes:
  a: {type: userInput, with: {prompt: "A?"}}
  b: {type: approvalGate, with: {prompt: "B?"}}
outputs: {both: "{{ a.text }}{{ b.by }}"}
`

func TestWaitingErrorNamesInterrupts(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, breakFlow)
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
	_, err := s.Send(t.Context(), "x", weir.SendOptions{})
	var waits *session.WaitingError
	var coded *weir.Error
	if !errors.As(err, &waits) || len(waits.Interrupts) != 2 || !errors.As(err, &coded) || coded.Code != "session_waits" || !strings.Contains(err.Error(), "a:ask#1") {
		t.Fatal(err)
	}
	b := slices.IndexFunc(waits.Interrupts, func(i engine.Interrupt) bool { return i.Kind == engine.AwaitApproval })
	turn, err := s.Answer(t.Context(), waits.Interrupts[b].ID, "approve", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if state := await(t, turn); len(state.Interrupts) != 1 {
		t.Fatalf("%+v", state)
	}
	if state := weirkit.SendAndWait(t, s, "one", weir.SendOptions{}); state.Status.String() != "completed" {
		t.Fatalf("%+v", state)
	}
}

// TestMessagesAnswerQuestionsOneAfterTheOther has two questions open at a time. A message that does not fit the first is refused,
// also if it would fit the second.
func TestMessagesAnswerQuestionsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(askFlow, "after: name, ", "", 1))
		s := weirkit.OpenSession(t, w, f)
		prompts := func(state *session.ReplyState) (out string) {
			for i := range state.Interrupts {
				out += state.Interrupts[i].Prompt
			}
			return out
		}
		first := weirkit.SendAndWait(t, s, "36", weir.SendOptions{})
		said := map[string]string{"Your age?": "36", "Your name?": "Ada"}
		open := prompts(&first)
		if len(said[open]) == 0 || len(first.Interrupts) != 1 {
			t.Fatalf("the message answers the first question: %q %+v", open, first.Error)
		}
		last := weirkit.SendAndWait(t, s, said[open], weir.SendOptions{ID: "m"})
		if last.Status != engine.Completed || last.Run != first.Run {
			t.Fatalf("%+v %+v", last, last.Error)
		}
		if again := weirkit.SendAndWait(t, s, said[open], weir.SendOptions{ID: "m"}); again.Run != first.Run {
			t.Errorf("%+v", again)
		}
		if info, err := s.Info(t.Context()); err != nil || info.Queued != 0 || info.Rounds != 1 {
			t.Errorf("%+v %v", info, err)
		}
	})
}

func TestCancelledOrFailedRoundKeepsMessages(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		g := newBlockedModel()
		w, f := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		turn := send(t, s, "stop me", weir.SendOptions{})
		<-g.called
		waiting := send(t, s, "never mind", weir.SendOptions{})
		if err := waiting.Cancel(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if state := await(t, waiting); state.Status.String() != "cancelled" || state.Run != "" {
			t.Fatalf("%+v", state)
		}
		if err := turn.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
		if state := await(t, turn); state.Status.String() != "cancelled" {
			t.Fatalf("%+v", state)
		}
		g.open <- struct{}{}
		if state := weirkit.SendAndWait(t, s, "again", weir.SendOptions{}); state.Status.String() != "completed" || state.Round != 2 {
			t.Fatalf("%+v", state)
		}
		ms, err := s.Messages(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			if (m.Status.String() == "cancelled") != (m.Round == 1) {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestSessionForkStartsWithHistoryAndDiverges(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		for i := range 3 {
			weirkit.SendAndWait(t, s, fmt.Sprint(i), weir.SendOptions{})
		}
		before := textsOf(t, s)
		fork, err := s.Fork(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		weirkit.SendAndWait(t, fork, "other", weir.SendOptions{})
		weirkit.SendAndWait(t, s, "same", weir.SendOptions{})
		if got := textsOf(t, fork); !slices.Equal(got, append(slices.Clone(before[:2]), "user other", "assistant 3: other")) {
			t.Error(got)
		}
		if got := textsOf(t, s); !slices.Equal(got[:6], before) || len(got) != 8 {
			t.Error(got)
		}
		deep, err := fork.Fork(t.Context(), -1)
		if err != nil {
			t.Fatal(err)
		}
		if state := weirkit.SendAndWait(t, deep, "deep", weir.SendOptions{}); state.Text != "5: deep" {
			t.Error(state.Text)
		}
		if _, err := s.Fork(t.Context(), 99); err == nil {
			t.Error("a fork with more than there is")
		}
	})
}

func TestRoundHistoryIsCappedByCurrentFlow(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		var mu sync.Mutex
		var sent []*llm.Request
		p := &weirkit.RepeatingModel{Sent: func(r *llm.Request) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, r)
		}}
		w, f := weirkit.OpenTalk(t, path, p, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		for i := range 10 {
			weirkit.SendAndWait(t, s, fmt.Sprint("m", i), weir.SendOptions{})
		}
		capped, err := w.Parse("talk.yaml", []byte(strings.Replace(weirkit.TalkFlow, "inputs:", "session: {maxMessages: 4}\ninputs:", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.WithFlow(t.Context(), capped); err != nil {
			t.Fatal(err)
		}
		if state := weirkit.SendAndWait(t, s, "short", weir.SendOptions{}); state.Text != "5: short" {
			t.Fatal(state.Text)
		}
		if first := sent[10].Messages[0]; first.Role != convo.User || first.Text != "m8" {
			t.Errorf("%+v", first)
		}
		few, err := w.Parse("talk.yaml", []byte(strings.Replace(weirkit.TalkFlow, "inputs:", "session: {maxTokens: 20}\ninputs:", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.WithFlow(t.Context(), few); err != nil {
			t.Fatal(err)
		}
		if state := weirkit.SendAndWait(t, s, "fewer", weir.SendOptions{}); len(sent[11].Messages) > 5 || len(sent[11].Messages) < 2 {
			t.Fatal(state.Text)
		}
		if got := textsOf(t, s); len(got) != 24 {
			t.Errorf("%d messages are left of the history", len(got))
		}
	})
}
