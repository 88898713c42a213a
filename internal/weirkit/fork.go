package weirkit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// EchoModel answers with the number of messages and the end of their text, so that an
// answer depends on the request alone. If it is offered tools, it first calls look.
type EchoModel struct{}

// Generate implements weir.Provider.
func (*EchoModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	var said []string
	for _, m := range r.Messages {
		said = append(said, m.Text)
	}
	if last := r.Messages[len(r.Messages)-1]; len(r.Tools) > 0 && last.Role != convo.Tool {
		return &llm.Response{Message: convo.Message{
			Role: convo.Assistant, Calls: []convo.Call{{ID: fmt.Sprint("c", len(said)), Name: "look", Arguments: "{}"}},
		}}, nil
	}
	text := strings.Join(said, "|")
	return &llm.Response{
		Message: convo.Message{Role: convo.Assistant, Text: fmt.Sprintf("%d:%s", len(said), text[max(0, len(text)-20):])},
		Usage:   llm.Usage{Input: 10, Output: 5},
	}, nil
}

// FailsOnceType returns the node type wobbly: it fails in its first attempt.
func FailsOnceType() weir.Type {
	return weir.Func("wobbly", func(ctx weir.Ctx, in struct{ Text string }) (struct{ Text string }, error) {
		if ctx.Info().Attempt == 1 {
			return struct{ Text string }{}, fmt.Errorf("not yet")
		}
		return struct{ Text string }{in.Text + "!"}, nil
	})
}

// ForkFlows returns flows, by name, that together use every kind of event that a run
// can share with a fork: chains, loops, lanes, branches, child runs and agents.
func ForkFlows() map[string]string {
	return map[string]string{
		"chain": `
inputs: {name: {type: text, default: Ada}}
nodes:
  hello: {type: template, with: {text: "Hello {{ run.inputs.name }}"}}
  a: {type: llmRequest, in: {message: "{{ hello.text }}"}}
  note: {type: template, in: {t: "{{ a.text }}"}, with: {text: "noted {{ inputs.t }}"}}
  b: {type: llmRequest, in: {message: "{{ note.text }}"}}
outputs: {a: "{{ a.text }}", b: "{{ b.text }}"}
`,
		"loop": `
state: {seen: {reducer: append, initial: []}}
nodes:
  grow:
    type: loop
    in: {draft: x}
    with:
      max: 3
      body:
        nodes:
          ask: {type: userInput, in: {prompt: "Round {{ inputs.index }}?"}, with: {prompt: "{{ inputs.prompt }}"}}
          write: {type: llmRequest, in: {message: "{{ inputs.draft }}{{ ask.text }}"}}
        outputs: {draft: "{{ write.text }}"}
  end: {type: llmRequest, in: {message: "{{ grow.draft }}"}}
outputs: {draft: "{{ grow.draft }}", end: "{{ end.text }}"}
`,
		"each": `
nodes:
  list: {type: transform, with: {expr: "['p', 'q', 'r']"}}
  each:
    type: forEach
    in: {items: "{{ list.value }}"}
    with:
      concurrency: 2
      body:
        nodes:
          say: {type: llmRequest, in: {message: "{{ inputs.item }}"}}
          again: {type: wobbly, in: {text: "{{ say.text }}"}, retry: {attempts: 3, backoff: 1ms}}
        outputs: {result: "{{ again.text }}"}
  end: {type: llmRequest, in: {message: "Of {{ each.results }}"}}
outputs: {all: "{{ each.results }}", end: "{{ end.text }}"}
`,
		"branches": `
budget: {maxTokens: 10000}
nodes:
  first: {type: llmRequest, in: {message: one}, retry: {attempts: 2}}
  ask: {type: userInput, after: first, with: {prompt: "Which?", history: true}}
  check: {type: decision, in: {answer: "{{ ask.text }}"}, with: {expr: "inputs.answer.size() > 100 ? 'long' : 'short'", branches: [long, short]}}
  long: {type: llmRequest, after: check.long, in: {message: long}}
  short: {type: llmRequest, after: check.short, in: {message: short}, interruptBefore: true}
  room: {type: newContext, after: check.short}
  inside: {type: llmRequest, in: {message: alone, context: "{{ room.context }}"}}
  join: {type: merge, in: {value: ["{{ long.text }}", "{{ short.text }}"]}}
outputs: {said: "{{ join.value }}", inside: "{{ inside.text }}"}
`,
		"child": `
nodes:
  before: {type: llmRequest, in: {message: before}}
  talk: {type: flow, after: before, in: {name: Bo}, isolation: share, with: {flow: talk}}
  apart: {type: flow, after: before, in: {name: Cy}, with: {flow: talk}}
  end: {type: llmRequest, in: {message: "{{ talk.said }} and {{ apart.said }}"}}
outputs: {end: "{{ end.text }}"}
`,
		"agent": `
nodes:
  ask: {type: userInput, with: {prompt: "What?"}}
  box: {type: tools, with: {tools: [look]}}
  work: {type: agent, in: {message: "{{ ask.text }}", tools: "{{ box.tools }}"}}
  after: {type: llmRequest, in: {message: "{{ work.text }}"}, interruptAfter: true}
outputs: {work: "{{ work.text }}", after: "{{ after.text }}"}
`,
	}
}

// OpenForkWeir opens a Weir on a store with the types, tools and model that ForkFlows
// need.
func OpenForkWeir(t *testing.T, s weir.Store, model weir.Provider) *weir.Weir {
	t.Helper()
	return Open(t, weir.Options{
		Store: s, Types: []weir.Type{FailsOnceType()}, Parallel: 3, Providers: map[string]weir.Provider{"p": model}, Tools: []*weir.Tool{NewLookTool(t)},
	})
}

// NewLookTool makes the tool look, which takes nothing and returns "seen".
func NewLookTool(t *testing.T) *weir.Tool {
	t.Helper()
	l, err := tool.FromFunc("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ChildFlow is the flow talk, which other flows run as a child: it asks a model and a
// person.
const ChildFlow = `
weir: 1
name: talk
context: {model: p/m, budget: {window: 8000}}
inputs: {name: {type: text, required: true}}
nodes:
  a: {type: llmRequest, in: {message: "I am {{ run.inputs.name }}"}}
  ask: {type: userInput, after: a, with: {prompt: "Well, {{ run.inputs.name }}?"}}
  b: {type: llmRequest, in: {message: "{{ ask.text }}"}}
outputs: {said: "{{ b.text }}"}
`

// LoadForkFlow parses one of the ForkFlows.
func LoadForkFlow(t *testing.T, w *weir.Weir, name string) *weir.Flow {
	t.Helper()
	inner, err := w.Parse("talk", []byte(ChildFlow))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse(name, []byte(ForkFlow(name)), inner)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ForkFlow returns the text of one of the ForkFlows, with its head.
func ForkFlow(name string) string {
	return "weir: 1\nname: " + name + "\ncontext: {model: p/m, budget: {window: 8000}}" + ForkFlows()[name]
}

// AnswerAll answers every interrupt of a run until the run ends, and returns its result.
func AnswerAll(t *testing.T, w *weir.Weir, run *weir.Run) weir.Result {
	t.Helper()
	for range 100 {
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != engine.Paused {
			return r
		}
		i := r.Interrupts[0]
		var answer any = "re: " + i.Prompt
		if i.Kind == engine.AwaitBreak {
			answer = nil
		}
		if run, err = w.Answer(t.Context(), r.Run, i.ID, answer, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it never ends")
	return weir.Result{}
}

// JournalText returns the journal of a run, encoded as JSON.
func JournalText(t *testing.T, s weir.Store, run string) string {
	t.Helper()
	var b []byte
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, err = engine.EncodeEvents(b, c.Events); err != nil {
			t.Fatal(err)
		}
	}
	return string(b)
}
