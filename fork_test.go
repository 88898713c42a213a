package weir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// echoModel answers with what it is told, however often it is asked.
type echoModel struct{ calls atomic.Int64 }

// Generate implements weir.Provider.
func (e *echoModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	e.calls.Add(1)
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

// failsOnceType fails in its first attempt.
func failsOnceType() weir.Type {
	return weir.Func("wobbly", func(ctx weir.Ctx, in struct{ Text string }) (struct{ Text string }, error) {
		if ctx.Info().Attempt == 1 {
			return struct{ Text string }{}, fmt.Errorf("not yet")
		}
		return struct{ Text string }{in.Text + "!"}, nil
	})
}

// forkFlows are flows of all that a past can hold.
var forkFlows = map[string]string{
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

// openForkWeir is a Weir on a store, with what it takes to run the travels.
func openForkWeir(t *testing.T, s weir.Store, model weir.Provider) *weir.Weir {
	t.Helper()
	return open(t, weir.Options{
		Store: s, Types: []weir.Type{failsOnceType()}, Parallel: 3, Providers: map[string]weir.Provider{"p": model}, Tools: []*weir.Tool{newLookTool(t)},
	})
}

func newLookTool(t *testing.T) *weir.Tool {
	t.Helper()
	l, err := tool.FromFunc("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// talkContexts is a flow that others run: it asks a model and a person.
const talkContexts = `
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

// loadForkFlow parses one of the travels.
func loadForkFlow(t *testing.T, w *weir.Weir, name string) *weir.Flow {
	t.Helper()
	inner, err := w.Parse("talk", []byte(talkContexts))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse(name, []byte(forkFlow(name)), inner)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func forkFlow(name string) string {
	return "weir: 1\nname: " + name + "\ncontext: {model: p/m, budget: {window: 8000}}" + forkFlows[name]
}

// answerAll answers whatever a run asks until it has ended.
func answerAll(t *testing.T, w *weir.Weir, run *weir.Run) weir.Result {
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

// resultText is what a run came to: its outputs, its state and all messages.
func resultText(t *testing.T, w *weir.Weir, r weir.Result) string {
	t.Helper()
	v, err := w.Inspect(t.Context(), r.Run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v\n", r.Status, r.Outputs)
	for _, k := range v.Run.State().Keys() {
		x, _ := v.Run.State().Get(k)
		fmt.Fprintln(&b, k, x)
	}
	for _, id := range slices.Sorted(maps.Keys(v.Contexts)) {
		ms, err := v.Contexts[id].Messages()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(ms)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, id, string(text))
	}
	return regexp.MustCompile(`"[a-z]+\d*\.[a-z0-9]+/`).ReplaceAllString(b.String(), `"CHILD/`)
}

// bytesOf is a run's journal.
func bytesOf(t *testing.T, s weir.Store, run string) string {
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

func TestForkAtAnyEventEqualsTheRun(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) weir.Store{
		"memory": func(*testing.T) weir.Store { return memory.New() },
		"sqlite": func(t *testing.T) weir.Store {
			t.Helper()
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for kind, make := range stores {
		for name := range forkFlows {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				forkEverywhere(t, make(t), name)
			})
		}
	}
}

// forkEverywhere forks a travel at each of its events.
func forkEverywhere(t *testing.T, s weir.Store, name string) {
	t.Helper()
	w := openForkWeir(t, s, &echoModel{})
	run, err := w.Start(t.Context(), loadForkFlow(t, w, name), weir.Start{ID: "original"})
	if err != nil {
		t.Fatal(err)
	}
	whole := answerAll(t, w, run)
	if whole.Status != engine.Completed {
		t.Fatalf("%+v", whole)
	}
	want, journal := resultText(t, w, whole), bytesOf(t, s, "original")
	row, err := s.Run(t.Context(), "original")
	if err != nil {
		t.Fatal(err)
	}
	stride := int64(1)
	if testing.Short() {
		stride = 3
	}
	for at := int64(1); at <= row.Events; at += stride {
		fork, plan, err := w.Fork(t.Context(), "original", weir.ForkOptions{ID: fmt.Sprint("fork", at), At: at})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		r := answerAll(t, w, fork)
		if got := resultText(t, w, r); got != want {
			t.Fatalf("forked at %d of %d (%d):\n%s\nthe original:\n%s\nerror %v", at, row.Events, plan.At, got, want, r.Error)
		}
	}
	if now := bytesOf(t, s, "original"); now != journal {
		t.Error("the original was touched")
	}
	again, err := s.Run(t.Context(), "original")
	if err != nil {
		t.Fatal(err)
	}
	// These move when the original itself is left, which may be after its end is told.
	again.Fence, again.Owner, again.Until = row.Fence, row.Owner, row.Until
	if !reflect.DeepEqual(again, row) {
		t.Errorf("the original's row was touched: %+v, was %+v", again, row)
	}
}
