package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/session"
)

func TestSessionBudgetSpansRounds(t *testing.T) {
	t.Parallel()
	stores(t, spendOverRounds)
}

func spendOverRounds(t *testing.T, path string) {
	t.Helper()
	w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "inputs:", "session: {budget: {maxCalls: 3}}\ninputs:", 1))
	s := weirkit.OpenSession(t, w, f)
	for i := range 3 {
		if state := weirkit.SendAndWait(t, s, fmt.Sprint(i), weir.SendOptions{}); state.Status != engine.Completed {
			t.Fatalf("%+v", state)
		}
	}
	fork, err := s.Fork(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		state := weirkit.SendAndWait(t, s, "too much", weir.SendOptions{})
		if state.Status != engine.Failed || state.Error.Code != engine.CodeBudget || !strings.Contains(state.Error.Budget, "session") || state.Spent.Calls != 0 {
			t.Fatalf("%s: %#v", state.Status, state.Error)
		}
	}
	for i := range 4 {
		state := weirkit.SendAndWait(t, fork, "aside", weir.SendOptions{})
		if want := i < 3; (state.Status == engine.Completed) != want {
			t.Fatalf("round %d of the fork: %+v %+v", i+1, state, state.Error)
		}
	}
	more, err := w.Parse("talk.yaml", []byte(strings.Replace(weirkit.TalkFlow, "inputs:", "session: {budget: {maxCalls: 4}}\ninputs:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithFlow(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if state := weirkit.SendAndWait(t, s, "with more", weir.SendOptions{}); state.Status != engine.Completed {
		t.Errorf("%+v", state.Error)
	}
}

func TestRoundAtSessionBudgetMayWaitForIncrease(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "inputs:", "session: {budget: {maxCalls: 1, onLimit: pause}}\ninputs:", 1))
		s := weirkit.OpenSession(t, w, f)
		weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
		state := weirkit.SendAndWait(t, s, "two", weir.SendOptions{})
		if state.Status != engine.Paused || len(state.Interrupts) != 1 {
			t.Fatalf("%+v %+v", state, state.Error)
		}
		var waits *session.WaitingError
		if _, err := s.Send(t.Context(), "three", weir.SendOptions{}); !errors.As(err, &waits) {
			t.Fatal(err)
		}
		turn, err := s.Answer(t.Context(), state.Interrupts[0].ID, map[string]any{"maxCalls": 2}, weir.SendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if state = await(t, turn); state.Status != engine.Completed || state.Text != "3: two" {
			t.Fatalf("%+v %+v", state, state.Error)
		}
		// What was added is the round's alone.
		if state = weirkit.SendAndWait(t, s, "three", weir.SendOptions{}); state.Status != engine.Paused {
			t.Fatalf("%+v %+v", state, state.Error)
		}
	})
}

const asideFlow = `
weir: 1
name: aside
context: {model: echo/m}
inputs: {message: {type: text, required: true}}
nodes:
  aside: {type: newContext, with: {label: notes, system: You doubt.}}
  brief:
    type: injectMessages
    in: {context: "{{ aside.context }}"}
    with: {messages: [{role: user, text: "How?"}, {role: assistant, text: "With doubts."}]}
  notes: {type: llmRequest, in: {context: "{{ brief.context }}", message: "About {{ run.inputs.message }}"}}
  more: {type: llmRequest, in: {context: "{{ notes.context }}", message: "Go on."}}
  answer: {type: llmRequest, after: more, in: {message: "{{ run.inputs.message }}"}}
outputs: {notes: "{{ more.text }}"}
`

func TestNewContextIsNotPartOfSession(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, asideFlow)
		s := weirkit.OpenSession(t, w, f)
		var want []string
		for i := range 4 {
			state := weirkit.SendAndWait(t, s, fmt.Sprint("m", i), weir.SendOptions{})
			if notes, err := weir.Output[string](state.Result, "notes"); err != nil || notes != "5: Go on." {
				t.Fatalf("the context on the side begins anew in each round: %q %v", notes, err)
			}
			want = append(want, fmt.Sprint("user m", i), fmt.Sprintf("assistant %d: m%d", 2*i+1, i))
			if got := textsOf(t, s); !slices.Equal(got, want) {
				t.Fatalf("after round %d: %q", i+1, got)
			}
		}
	})
}

const heardFlow = `
weir: 1
name: heard
context: {model: echo/m}
inputs: {message: {type: text, required: true}}
nodes:
  aside: {type: newContext, with: {label: notes}}
  main: {type: userInput, with: {prompt: "To all?", history: true}}
  side: {type: userInput, after: main, in: {context: "{{ aside.context }}"}, with: {prompt: "Aside?", history: true}}
  told: {type: llmRequest, in: {context: "{{ side.context }}"}}
  answer: {type: llmRequest, after: told, in: {context: "{{ main.context }}"}}
outputs: {told: "{{ told.text }}"}
`

func TestAnswerIsAddedToItsContext(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, heardFlow)
		s := weirkit.OpenSession(t, w, f)
		var want []string
		for i := range 2 {
			if state := weirkit.SendAndWait(t, s, "go", weir.SendOptions{}); state.Interrupts[0].Prompt != "To all?" {
				t.Fatalf("%+v", state)
			}
			if state := weirkit.SendAndWait(t, s, fmt.Sprint("aloud", i), weir.SendOptions{}); state.Interrupts[0].Prompt != "Aside?" {
				t.Fatalf("%+v", state)
			}
			if got := textsOf(t, s); len(got) != len(want)+1 {
				t.Fatalf("an answer is in the history when it is given: %q", got)
			}
			state := weirkit.SendAndWait(t, s, fmt.Sprint("whispered", i), weir.SendOptions{})
			if sideText, err := weir.Output[string](state.Result, "told"); err != nil || sideText != fmt.Sprintf("1: whispered%d", i) {
				t.Fatal(sideText, err)
			}
			want = append(want, fmt.Sprint("user aloud", i), fmt.Sprintf("assistant %d: aloud%d", 2*i+1, i))
			if got := textsOf(t, s); !slices.Equal(got, want) {
				t.Fatalf("%q", got)
			}
		}
	})
}

const childFlow = `
weir: 1
name: child
context: {model: echo/m}
inputs: {word: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Which {{ run.inputs.word }}?"}}
  answer: {type: llmRequest, in: {message: "{{ ask.text }}"}}
outputs: {said: "{{ answer.text }}"}
`

const parentFlow = `
weir: 1
name: parent
context: {model: echo/m}
inputs: {message: {type: text, required: true}}
nodes:
  hello: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  inner: {type: flow, isolation: %s, after: hello, in: {word: berth}, with: {flow: child}}
outputs: {said: "{{ inner.said }}"}
`

func TestNextMessageAnswersChildQuestion(t *testing.T) {
	t.Parallel()
	for isolation, sees := range map[string]int{"fresh": 1, "fork": 3, "share": 3} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			stores(t, func(t *testing.T, path string) {
				t.Helper()
				answerChildren(t, path, isolation, sees)
			})
		})
	}
}

// answerChildren is three rounds that each answer the question of a child, which
// sees so many messages in the first.
func answerChildren(t *testing.T, path, isolation string, sees int) {
	t.Helper()
	w, child := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, childFlow)
	f, err := w.Parse("parent.yaml", fmt.Appendf(nil, parentFlow, isolation), child)
	if err != nil {
		t.Fatal(err)
	}
	s := weirkit.OpenSession(t, w, f)
	added := 2
	if isolation == "share" {
		added = 4
	}
	for i := range 3 {
		before := len(textsOf(t, s))
		state := weirkit.SendAndWait(t, s, fmt.Sprint("hello", i), weir.SendOptions{})
		if len(state.Interrupts) != 1 || state.Interrupts[0].Prompt != "Which berth?" || !strings.HasPrefix(state.Interrupts[0].ID, "inner>") {
			t.Fatalf("%+v %+v", state, state.Error)
		}
		state = weirkit.SendAndWait(t, s, fmt.Sprint("number ", i), weir.SendOptions{})
		want := fmt.Sprintf("%d: number %d", sees+i*added*min(sees-1, 1), i)
		if said, err := weir.Output[string](state.Result, "said"); err != nil || said != want {
			t.Fatalf("round %d: %q, want %q, %v %+v", i+1, said, want, err, state.Error)
		}
		if got := textsOf(t, s); len(got) != before+added {
			t.Fatalf("%q", got)
		}
	}
}

func TestSessionRoundsReplayExactly(t *testing.T) {
	t.Parallel()
	stores(t, replayRounds)
}

func replayRounds(t *testing.T, path string) {
	t.Helper()
	var sent [][]convo.Message
	p := &weirkit.RepeatingModel{Sent: func(r *llm.Request) { sent = append(sent, slices.Clone(r.Messages)) }}
	w, f := weirkit.OpenTalk(t, path, p, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	for i := range 5 {
		weirkit.SendAndWait(t, s, fmt.Sprint("m", i), weir.SendOptions{})
	}
	whole := textsOf(t, s)
	rounds, err := s.Rounds(t.Context(), "", 0)
	if err != nil || len(rounds) != 5 {
		t.Fatal(len(rounds), err)
	}
	for i := range rounds {
		n := 4 - i // the newest is first
		v, err := w.Inspect(t.Context(), rounds[i].ID, 0)
		if err != nil || rounds[i].Round != n+1 {
			t.Fatal(rounds[i].Round, err)
		}
		ms, err := v.Contexts[engine.MainContext].Messages()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range ms {
			got = append(got, string(m.Role)+" "+m.Text)
		}
		if !slices.Equal(got, whole[:2*n+2]) {
			t.Errorf("round %d: %q", n+1, got)
		}
		for j, m := range sent[n] {
			if m.Text != ms[j].Text || m.Role != ms[j].Role {
				t.Errorf("round %d was sent %+v at %d and has %+v", n+1, m, j, ms[j])
			}
		}
	}
}
