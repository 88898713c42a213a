package runner_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/weirtest"
)

func TestMainHistoryGrowsOverTurns(t *testing.T) {
	t.Parallel()
	const turns = 40
	c := weirtest.Case{Answers: map[string]any{}}
	var want []string
	for i := range turns {
		said := fmt.Sprintf("question %d", i)
		if i == turns-1 {
			said = "bye"
		}
		c.Answers[fmt.Sprintf("talk#%d/ask", i+1)] = said
		c.Script = append(c.Script, weirtest.Says(fmt.Sprintf("answer %d", i))...)
		want = append(want, "user: "+said, fmt.Sprintf("assistant: answer %d", i))
	}
	r := weirtest.Flow(t, `
weir: 1
name: chat
context: {model: any/model}
nodes:
  talk:
    type: loop
    with:
      until: outputs.said == 'bye'
      body:
        nodes:
          ask: {type: userInput}
          reply: {type: llmRequest, in: {context: "{{ ask.context }}"}}
        outputs: {said: "{{ ask.text }}"}
`, c)
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, want...)
	for i, req := range r.Requests {
		weirkit.CheckLines(t, fmt.Sprintf("request %d", i+1), req.Messages, want[:2*i+1]...)
	}
	ids := map[string]bool{}
	for _, m := range r.Messages {
		if m.ID == "" || ids[m.ID] {
			t.Errorf("the id %q is empty or used twice", m.ID)
		}
		ids[m.ID] = true
	}
}

func TestIsolatedContextDoesNotChangeMain(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: aside
context: {model: any/model, system: Be brief.}
nodes:
  first: {type: llmRequest, in: {message: one}}
  aside: {type: newContext, after: first, with: {system: You doubt., messages: [{role: user, text: known}]}}
  tell: {type: injectMessages, in: {context: "{{ aside.context }}"}, with: {messages: [{role: assistant, text: noted}]}}
  doubt: {type: llmRequest, in: {context: "{{ tell.context }}", message: "really?"}}
  again: {type: llmRequest, after: doubt, in: {message: two}}
`, weirtest.Case{Script: weirtest.Says("I", "no", "II")})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, "user: one", "assistant: I", "user: two", "assistant: II")
	weirkit.CheckLines(t, "the aside", weirkit.MessagesIn(t, r, "aside"), "user: known", "assistant: noted", "user: really?", "assistant: no")
	if c := r.Contexts["aside"]; c.Kind != convo.Isolated || r.Contexts["main"].Kind != convo.Main {
		t.Errorf("kinds are %q and %q", c.Kind, r.Contexts["main"].Kind)
	}
	if a, b := r.Requests[1].System, r.Requests[2].System; a != "You doubt." || b != "Be brief." {
		t.Errorf("the instructions were %q and %q", a, b)
	}
}

func TestInputsAreAddedToTheirContext(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: two-rooms
context: {model: any/model}
nodes:
  room: {type: newContext}
  person: {type: userInput, in: {context: "{{ room.context }}"}, with: {history: true}}
  preset: {type: manualInput, in: {context: "{{ person.context }}"}, with: {text: preset, history: true}}
  inside: {type: llmRequest, in: {context: "{{ preset.context }}"}}
  outside: {type: manualInput, with: {text: outside, history: true}}
`, weirtest.Case{Answers: map[string]any{"person": "person"}, Script: weirtest.Says("heard")})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "the room", weirkit.MessagesIn(t, r, "room"), "user: person", "user: preset", "assistant: heard")
	weirkit.CheckLines(t, "main", r.Messages, "user: outside")
}

func TestReturningContextFromNodeIsAnError(t *testing.T) {
	t.Parallel()
	type anything struct{ Talk any }
	type context struct{ Talk convo.Context }
	for _, whole := range []weir.Type{
		weir.Func("anything", func(ctx weir.Ctx, _ struct{}) (anything, error) {
			m, err := ctx.Context()
			return anything{m}, err
		}).ReadsContext(),
		weir.Func("context", func(ctx weir.Ctx, _ struct{}) (context, error) {
			m, err := ctx.Context()
			if err != nil {
				return context{}, err
			}
			return context{m.Get()}, nil
		}).ReadsContext(),
	} {
		r := weirtest.Node(t, whole, weirtest.Case{})
		weirkit.CheckStatus(t, r, engine.Failed)
		if r.Error.Code != engine.CodeContext || !strings.Contains(r.Error.Message, "output talk") {
			t.Errorf("%s: the error is %v", whole.Spec().Name, r.Error)
		}
	}
}

func TestContextMustBeKnownBeforeNodeStarts(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: hidden
context: {model: any/model}
nodes:
  room: {type: newContext}
  rounds:
    type: forEach
    in: {items: ["{{ room.context }}"]}
    with:
      body:
        nodes:
          say: {type: llmRequest, in: {context: "{{ [inputs.item][0] }}", message: go}}
`, weirtest.Case{Script: weirtest.Says("1")})
	weirkit.CheckStatus(t, r, engine.Failed)
	if r.Error.Code != engine.CodeContext || len(r.Requests) != 0 {
		t.Errorf("the error is %v after %d model calls", r.Error, len(r.Requests))
	}
}

func TestLanesCommitInItemOrder(t *testing.T) {
	t.Parallel()
	// The lanes end in the opposite order: each waits for the next to be done.
	const lanes = 4
	done := make([]chan struct{}, lanes+1)
	for i := range done {
		done[i] = make(chan struct{})
	}
	close(done[lanes])
	type in struct{ I int }
	say := weir.Func("speak", func(ctx weir.Ctx, i in) (struct{}, error) {
		<-done[i.I+1]
		defer close(done[i.I])
		m, err := ctx.Context()
		if err == nil {
			_, err = m.Add(convo.Message{Role: convo.User, Text: fmt.Sprintf("lane %d sees %d", i.I, m.Get().History.Len())})
		}
		return struct{}{}, err
	}).WritesContext()
	r := weirtest.Flow(t, `
weir: 1
name: lanes
nodes:
  before: {type: injectMessages, with: {messages: [{text: before}]}}
  each:
    type: forEach
    after: before
    in: {items: [a, b, c, d]}
    with:
      concurrency: 4
      body: {nodes: {say: {type: speak, in: {i: "{{ inputs.index }}"}}}}
  after: {type: injectMessages, after: each, with: {messages: [{text: after}]}}
`, weirtest.Case{Types: []weir.Type{say}})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, "user: before", "user: lane 0 sees 1", "user: lane 1 sees 1",
		"user: lane 2 sees 1", "user: lane 3 sees 1", "user: after")
}

func TestFailedTurnKeepsUserMessageForRetry(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: retry
context: {model: any/model}
nodes:
  ask: {type: userInput}
  reply: {type: llmRequest, in: {message: "{{ ask.text }}"}, retry: {attempts: 2, on: [model_auth]}}
`, weirtest.Case{
		Answers: map[string]any{"ask": "hi"},
		Script:  append([]weirtest.Turn{weirtest.Fails("model_auth")}, weirtest.Says("hello")...),
	})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, "user: hi", "assistant: hello")
	weirkit.CheckLines(t, "the retry's request", r.Requests[1].Messages, "user: hi")
}

func TestFinallyFailedTurnKeepsOnlyTheUserMessage(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: broken
context: {model: any/model}
nodes:
  first: {type: llmRequest, in: {message: one}}
  ask: {type: userInput, after: first, with: {history: true}}
  reply: {type: llmRequest, in: {message: "{{ ask.text }}"}}
`, weirtest.Case{
		Answers: map[string]any{"ask": "two"},
		Script:  append(weirtest.Says("I"), weirtest.Fails("model_auth")),
	})
	weirkit.CheckStatus(t, r, engine.Failed)
	weirkit.CheckLines(t, "main", r.Messages, "user: one", "assistant: I", "user: two")
}

// overlapModel answers only once all expected calls are on their way, or, where turns
// must not overlap, notices that they do.
type overlapModel struct{ inside, maxInside atomic.Int32 }

func (c *overlapModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	c.maxInside.Store(max(c.maxInside.Load(), c.inside.Add(1)))
	defer c.inside.Add(-1)
	last := req.Messages[len(req.Messages)-1]
	return &llm.Response{Message: convo.Message{Text: "re " + last.Text}}, nil
}

func TestTurnsOnOneContextRunInFlowOrder(t *testing.T) {
	t.Parallel()
	model := &overlapModel{}
	r := weirtest.Flow(t, `
weir: 1
name: crowd
context: {model: any/model}
nodes:
  c: {type: llmRequest, in: {message: c}}
  a: {type: llmRequest, in: {message: a}}
  d: {type: llmRequest, in: {message: d}}
  b: {type: llmRequest, in: {message: b}}
`, weirtest.Case{Model: model})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, "user: a", "assistant: re a", "user: b", "assistant: re b",
		"user: c", "assistant: re c", "user: d", "assistant: re d")
	if n := model.maxInside.Load(); n != 1 {
		t.Errorf("%d turns of one context went on at once", n)
	}
}

func TestSkipHistoryReadsMainWithoutWriting(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: skip
context: {model: any/model}
nodes:
  first: {type: llmRequest, in: {message: one}}
  quick: {type: llmRequest, after: first, in: {message: aside}, with: {skipHistory: true}}
  second: {type: llmRequest, after: quick, in: {message: two}}
`, weirtest.Case{Script: weirtest.Says("I", "x", "II")})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "main", r.Messages, "user: one", "assistant: I", "user: two", "assistant: II")
	weirkit.CheckLines(t, "the aside's request", r.Requests[1].Messages, "user: one", "assistant: I", "user: aside")
}

func TestContextIsPassedThroughLoopBody(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: through
context: {model: any/model}
nodes:
  room: {type: newContext}
  rounds:
    type: loop
    in: {room: "{{ room.context }}"}
    with:
      max: 3
      body:
        nodes:
          say: {type: llmRequest, in: {context: "{{ inputs.room }}", message: go}}
        outputs: {room: "{{ say.context }}"}
  last: {type: llmRequest, in: {context: "{{ rounds.room }}", message: end}}
`, weirtest.Case{Script: weirtest.Says("1", "2", "3", "4")})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "the room", weirkit.MessagesIn(t, r, "room"), "user: go", "assistant: 1", "user: go", "assistant: 2",
		"user: go", "assistant: 3", "user: end", "assistant: 4")
	weirkit.CheckLines(t, "main", r.Messages)
}
