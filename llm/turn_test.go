package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

func echo(name string) *tool.Tool {
	return &tool.Tool{Name: name, Call: func(_ context.Context, c tool.Call) (string, error) {
		if strings.Contains(c.Arguments, "fail") {
			return "", errors.New("it broke")
		}
		return name + c.Arguments, nil
	}}
}

func TestTurnsGrowTheConversation(t *testing.T) {
	t.Parallel()
	s := service(recorded.NewScripted("hello, Ada", "you are Ada"))
	m := conversation(t)
	for _, text := range []string{"I am Ada", "who am I?"} {
		h := newAttempt(t.Context())
		r, err := s.Turn(t.Context(), h, llm.Turn{Context: m, Message: said("", text)})
		if err != nil {
			t.Fatal(err)
		}
		var streamed strings.Builder
		for _, c := range h.chunks {
			streamed.WriteString(c.Text)
		}
		if streamed.String() != r.Text || r.Stop != "end" || r.Steps != 1 {
			t.Errorf("the result is %+v, streamed %q", r, streamed.String())
		}
	}
	wantLines(t, "history", messagesOf(t, m),
		"user: I am Ada", "assistant: hello, Ada", "user: who am I?", "assistant: you are Ada")
}

func TestKnownMessageIsNotAddedTwice(t *testing.T) {
	t.Parallel()
	m := conversation(t, *said("ask.1", "hi"))
	h := newAttempt(t.Context())
	if _, err := service(recorded.NewScripted("hello")).Turn(t.Context(), h, llm.Turn{Context: m, Message: said("ask.1", "hi")}); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "the request", h.reqs[0].Messages, "user: hi")
	wantLines(t, "history", messagesOf(t, m), "user: hi", "assistant: hello")
}

func TestWithoutAMessageTheHistoryIsAnsweredAsItStands(t *testing.T) {
	t.Parallel()
	m := conversation(t, *said("", "hi"))
	s := service(recorded.NewScripted("hello"))
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: m}); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "history", messagesOf(t, m), "user: hi", "assistant: hello")
	_, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: conversation(t)})
	wantCode(t, err, "model_invalid_request")
}

func TestSkippingHistoryReadsAndNeverWrites(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(conversation(t, *said("a", "hi")).Get(), false)
	h := newAttempt(t.Context())
	r, err := service(recorded.NewScripted("hello")).Turn(t.Context(), h,
		llm.Turn{Context: m, Message: said("", "sum up"), SkipHistory: true})
	if err != nil || r.Text != "hello" {
		t.Fatal(r, err)
	}
	wantLines(t, "the request", h.reqs[0].Messages, "user: hi", "user: sum up")
	wantLines(t, "history", messagesOf(t, m), "user: hi")
	r, err = service(recorded.NewScripted("alone")).Turn(t.Context(), h, llm.Turn{Model: "p/m", Message: said("", "x")})
	if err != nil || r.Text != "alone" {
		t.Errorf("a turn without context: %v, %v", r, err)
	}
}

func TestToolsRunUntilTheModelAnswersWithoutCalls(t *testing.T) {
	t.Parallel()
	p := answers{
		says("let me see", calls("z", "look", `{"at":1}`), calls("y", "look", `{"at":2}`), calls("x", "look", `{"fail":1}`)),
		says("", calls("z", "missing", `{}`), calls("w", "look", `{broken`), calls("v", "look", "")),
		says("done"),
	}
	m := conversation(t)
	h := newAttempt(t.Context())
	r, err := service(p).Turn(t.Context(), h, llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{echo("look")}})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "history", messagesOf(t, m), "user: go",
		`assistant: let me see [z look{"at":1}] [y look{"at":2}] [x look{"fail":1}]`,
		`tool z: look{"at":1}`, `tool y: look{"at":2}`, `failed tool x: it broke`,
		`assistant:  [z missing{}] [w look{broken] [v look]`,
		`failed tool z: There is no tool named "missing".`, `failed tool w: The arguments are not valid JSON.`, `tool v: look`,
		"assistant: done")
	if r.Text != "done" || r.Steps != 3 || len(r.Calls) != 6 || r.Usage != (llm.Usage{Input: 30, Output: 3}) {
		t.Errorf("the result is %+v", r)
	}
	slices.Sort(h.made)
	want := []string{
		"run1/reply/model#1", "run1/reply/model#2", "run1/reply/model#3",
		"run1/reply/tool#1", "run1/reply/tool#2", "run1/reply/tool#3", "run1/reply/tool#6",
	}
	if !slices.Equal(h.made, want) {
		t.Errorf("effects are %q, want %q", h.made, want)
	}
}

func TestCallsOfOneAnswerRunAtTheSameTimeAndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &tool.Tool{Name: "slow", Call: func(ctx context.Context, c tool.Call) (string, error) {
			var d time.Duration
			if err := json.Unmarshal([]byte(c.Arguments), &d); err != nil {
				return "", err
			}
			select {
			case <-time.NewTimer(d * time.Second).C:
			case <-ctx.Done():
			}
			return c.Arguments, nil
		}}
		p := answers{says("", calls("a", "slow", "3"), calls("b", "slow", "2"), calls("c", "slow", "1")), says("ok")}
		m := conversation(t)
		start := time.Now()
		r, err := service(p).Turn(t.Context(), newAttempt(t.Context()),
			llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{slow}, EarlierToolCalls: 5})
		if err != nil || r.Text != "ok" {
			t.Fatal(r, err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("three calls of 3, 2 and 1 seconds took %v", took)
		}
		wantLines(t, "results", messagesOf(t, m)[2:5], "tool a: 3", "tool b: 2", "tool c: 1")
	})
}

func TestIndexesContinueFromEarlierTurnsOfTheAttempt(t *testing.T) {
	t.Parallel()
	p := answers{says("", calls("a", "look", "1")), says("ok"), says("", calls("a", "look", "2")), says("ok")}
	m, h := conversation(t), newAttempt(t.Context())
	before := 0
	for range 2 {
		r, err := service(p).Turn(t.Context(), h,
			llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{echo("look")}, EarlierToolCalls: before})
		if err != nil {
			t.Fatal(err)
		}
		before += len(r.Calls)
	}
	if !slices.Contains(h.made, "run1/reply/tool#2") || messagesOf(t, m)[6].Text != "look2" {
		t.Errorf("effects are %q, history %q", h.made, lines(messagesOf(t, m)))
	}
}

func TestToolThatEndsTheTurnIsTheLastMessage(t *testing.T) {
	t.Parallel()
	end := echo("finish")
	end.EndsTurn = true
	p := answers{says("bye", calls("a", "look", "{}"), calls("b", "finish", "{}")), says("never")}
	m := conversation(t)
	r, err := service(p).Turn(t.Context(), newAttempt(t.Context()),
		llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{echo("look"), end}})
	if err != nil || r.Text != "bye" || r.Stop != "calls" || r.Steps != 1 {
		t.Errorf("the result is %+v, %v", r, err)
	}
	wantLines(t, "history", messagesOf(t, m), "user: go", "assistant: bye [a look{}] [b finish{}]", "tool a: look{}", "tool b: finish{}")
}

func TestFailedTurnKeepsOnlyTheUserMessage(t *testing.T) {
	t.Parallel()
	p := answers{says("first", calls("a", "look", "{}"))}
	m := conversation(t)
	_, err := service(p).Turn(t.Context(), newAttempt(t.Context()),
		llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{echo("look")}})
	wantCode(t, err, "model_invalid_request")
	wantLines(t, "history", messagesOf(t, m), "user: go")
}

func TestTurnStopsAtMaxSteps(t *testing.T) {
	t.Parallel()
	p := make(answers, 40)
	for i := range p {
		p[i] = says("", calls("a", "look", "{}"))
	}
	for limit, want := range map[int]int{0: llm.DefaultMaxSteps, 3: 3} {
		h := newAttempt(t.Context())
		_, err := service(p).Turn(t.Context(), h,
			llm.Turn{Context: conversation(t), Message: said("", "go"), Tools: []*tool.Tool{echo("look")}, MaxSteps: limit})
		wantCode(t, err, "turn_too_long")
		if h.models != want {
			t.Errorf("limit %d: %d model calls, want %d", limit, h.models, want)
		}
	}
}

func TestATurnMayEndAtItsLimitAndIsKept(t *testing.T) {
	t.Parallel()
	p := answers{says("one", calls("a", "look", "1")), says("two", calls("b", "look", "2")), says("never")}
	m := conversation(t)
	r, err := service(p).Turn(t.Context(), newAttempt(t.Context()), llm.Turn{
		Context: m, Message: said("", "go"),
		Tools: []*tool.Tool{echo("look")}, MaxSteps: 2, StopAtMax: true,
	})
	if err != nil || r.Stop != llm.StopSteps || r.Steps != 2 {
		t.Errorf("the result is %+v, %v", r, err)
	}
	wantLines(t, "history", messagesOf(t, m), "user: go", "assistant: one [a look1]", "tool a: look1",
		"assistant: two [b look2]", "tool b: look2")
}

func TestWaitingTurnContinuesFromRecordedCalls(t *testing.T) {
	t.Parallel()
	var asked, answered atomic.Int32
	ask := &tool.Tool{Name: "ask", Call: func(context.Context, tool.Call) (string, error) {
		if asked.Add(1) == 1 {
			return "", errWaits
		}
		return "yes", nil
	}}
	look := &tool.Tool{Name: "look", Call: func(context.Context, tool.Call) (string, error) {
		return fmt.Sprintf("bad \xff byte, call %d", answered.Add(1)), nil
	}}
	first := says("hm \xff", calls("a", "ask", "{}"), calls("b", "look", "{}"))
	first.Message.Native = json.RawMessage(`{"z": "<1>", "a": 1.0}`)
	p := answers{first, says("good", calls("", "look", "{}"), calls("", "look", "{}")), says("end")}
	h := newAttempt(t.Context())
	turn := func() (*convo.Manager, *llm.Result, error) {
		h.enter()
		m := conversation(t)
		r, err := service(p).Turn(t.Context(), h, llm.Turn{Context: m, Message: said("", "go"), Tools: []*tool.Tool{ask, look}})
		return m, r, err
	}
	if _, _, err := turn(); !errors.Is(err, errWaits) || answered.Load() != 1 {
		t.Fatalf("the waiting turn returned %v, the other tool ran %d times", err, answered.Load())
	}
	m, r, err := turn()
	if err != nil || r.Text != "end" || answered.Load() != 3 {
		t.Fatalf("the turn went on to %+v, %v after %d calls", r, err, answered.Load())
	}
	// Entered once more with everything recorded, it asks for the same and
	// gives the same, though two of the calls had no id.
	made := len(h.made)
	again, r2, err := turn()
	if err != nil || len(h.made) != made {
		t.Fatalf("entered again: %v, %d new effects", err, len(h.made)-made)
	}
	if !slices.Equal(lines(messagesOf(t, m)), lines(messagesOf(t, again))) || r.Text != r2.Text {
		t.Errorf("entered again the history is %q, was %q", lines(messagesOf(t, again)), lines(messagesOf(t, m)))
	}
}

func TestRequestsAreRepaired(t *testing.T) {
	t.Parallel()
	m := conversation(t, *said("", "hi"),
		convo.Message{Role: convo.Assistant, Calls: []convo.Call{calls("lost", "look", "{}")}}, *said("", "still there?"))
	h := newAttempt(t.Context())
	if _, err := service(answers{says("yes"), says("yes")}).Turn(t.Context(), h, llm.Turn{Context: m}); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "the request", h.reqs[0].Messages, "user: hi", "user: still there?")
	if len(messagesOf(t, m)) != 4 {
		t.Error("repairing a request changed the history")
	}
}

func TestACancelledTurnSaysWhy(t *testing.T) {
	t.Parallel()
	why := errors.New("stopped by Ada")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := service(recorded.NewScripted("x")).Turn(ctx, newAttempt(ctx), llm.Turn{Context: conversation(t), Message: said("", "go")})
	if !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}
