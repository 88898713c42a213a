package builtin_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/weirtest"
)

const talkChild = `
weir: 1
name: child
context: {model: script/demo, system: You are the child.}
inputs:
  word: {type: text, default: inner}
nodes:
  keep: {type: transform, with: {expr: "1", state: {mine: "1"}}}
  say: {type: llmRequest, after: keep, in: {message: "{{ run.inputs.word }}"}}
  private: {type: template, with: {text: secret}}
outputs: {said: "{{ say.text }}", user: "{{ run.user }}", seen: "{{ has(state.theirs) ? state.theirs : 0 }}", mine: "{{ state.mine }}"}
`

const talkParent = `
weir: 1
name: parent
context: {model: script/demo, system: You are the parent.}
nodes:
  before: {type: llmRequest, in: {message: "outer"}}
  keep: {type: transform, after: before, with: {expr: "1", state: {theirs: "7", other: "8"}}}
  child: {type: flow, after: keep, NODE}
  after: {type: llmRequest, after: child, in: {message: "last"}}
outputs: {said: "{{ child.said }}", all: "{{ child.outputs }}", text: "{{ child.text }}", run: "{{ child.run }}"}
`

// runTalk runs the parent with a child node of these keys; the model counts.
func runTalk(t *testing.T, keys string) weirtest.Result {
	t.Helper()
	r := weirtest.Flow(t, strings.Replace(talkParent, "NODE", keys, 1), weirtest.Case{
		Files: map[string]string{"child.yaml": talkChild}, Script: weirtest.Says("1", "2", "3"), User: "ada",
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	return r
}

func TestIsolationOfChildContexts(t *testing.T) {
	t.Parallel()
	before := []string{"user: outer", "assistant: 1"}
	with := func(more ...string) []string { return append(slices.Clone(before), more...) }
	for _, c := range []struct {
		name, keys string
		child      []string // what the child's model call was sent
		after      []string // what the parent's next was
	}{
		{"fresh unless something else is said", "with: {flow: child.yaml}", []string{"user: inner"}, with("user: last")},
		{"fresh", "isolation: fresh, with: {flow: child.yaml}", []string{"user: inner"}, with("user: last")},
		{"fork sees and does not write", "isolation: fork, with: {flow: child.yaml}", with("user: inner"), with("user: last")},
		{
			"share sees and writes", "isolation: share, with: {flow: child.yaml}",
			with("user: inner"), with("user: inner", "assistant: 2", "user: last"),
		},
		{
			"the last message, and a reply", "with: {flow: child.yaml, lastMessage: word, reply: true}",
			[]string{"user: 1"},
			with("assistant: 2", "user: last"),
		},
		{
			"what is wired goes before the last message", "in: {word: wired}, with: {flow: child.yaml, lastMessage: word}",
			[]string{"user: wired"},
			with("user: last"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := runTalk(t, c.keys)
			got := sentMessages(r)
			if len(got) != 3 || !reflect.DeepEqual(got[1], c.child) || !reflect.DeepEqual(got[2], c.after) {
				t.Errorf("the calls were sent\n%q\nexpected of the child\n%q\nand then\n%q", got, c.child, c.after)
			}
			if r.Requests[1].System != "You are the child." || r.Requests[2].System != "You are the parent." {
				t.Errorf("the instructions were %q and %q", r.Requests[1].System, r.Requests[2].System)
			}
		})
	}
}

func TestChildReturnsOnlyDeclaredOutputs(t *testing.T) {
	t.Parallel()
	r := runTalk(t, "with: {flow: child.yaml, state: [theirs, absent]}")
	want := map[string]any{"said": "2", "user": "ada", "seen": int64(7), "mine": int64(1)}
	if !reflect.DeepEqual(r.Outputs["all"], want) {
		t.Errorf("the outputs are %v, expected %v", r.Outputs["all"], want)
	}
	if r.Outputs["said"] != "2" || r.Outputs["text"] != "2" || !strings.HasPrefix(fmt.Sprint(r.Outputs["run"]), "run.") {
		t.Errorf("the ports are %v", r.Outputs)
	}
	if _, leaked := r.State["mine"]; leaked || r.State["theirs"] != int64(7) {
		t.Errorf("the state is %v", r.State)
	}
	if r := runTalk(t, "with: {flow: child.yaml}"); r.Outputs["all"].(map[string]any)["seen"] != int64(0) {
		t.Errorf("state that was not named reached the child: %v", r.Outputs["all"])
	}
}

func TestMissingLastMessageIsAnError(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: silent
nodes: {child: {type: flow, with: {flow: child.yaml, lastMessage: word}}}
`, weirtest.Case{Files: map[string]string{"child.yaml": talkChild}})
	if r.Error == nil || r.Error.Code != engine.CodeInput || !strings.Contains(r.Error.Message, "has no message for the input word") {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
}

const asking = `
weir: 1
name: asking
inputs:
  who: {type: text, required: true}
nodes:
  ask: {type: userInput, with: {prompt: "{{ run.inputs.who }}?"}}
outputs: {word: "{{ ask.text }}"}
`

const parallel = `
weir: 1
name: parallel
nodes:
  each:
    type: forEach
    in: {items: [a, b, c]}
    with:
      concurrency: 3
      body:
        nodes: {child: {type: flow, in: {who: "{{ inputs.item }}"}, with: {flow: asking.yaml}}}
        outputs: {result: "{{ child.word }}"}
outputs: {words: "{{ each.results }}"}
`

func TestParallelChildrenQuestionsSurfaceAtTheRoot(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, parallel, weirtest.Case{
		Files:   map[string]string{"asking.yaml": asking},
		Answers: map[string]any{"each#1/child>ask": "one", "each#2/child>ask": "two", "each#3/child>ask": "three"},
	})
	if want := []any{"one", "two", "three"}; !reflect.DeepEqual(r.Outputs["words"], want) {
		t.Errorf("the run %s with %v, waits for %v: %v", r.Status, r.Outputs, r.Waiting, r.Error)
	}
}

func TestRecursiveFlowsEndAtTheDepthLimit(t *testing.T) {
	t.Parallel()
	down := `
weir: 1
name: down
inputs: {n: {type: number, required: true}}
nodes:
  more: {type: decision, with: {expr: run.inputs.n > 0}}
  again: {type: flow, after: more.true, in: {n: "{{ run.inputs.n - 1 }}"}, with: {flow: self}}
outputs: {depth: "{{ run.inputs.n }}"}
`
	if r := weirtest.Flow(t, down, weirtest.Case{In: map[string]any{"n": 8}}); r.Status != engine.Completed {
		t.Errorf("eight below the first: the run %s: %v", r.Status, r.Error)
	}
	r := weirtest.Flow(t, down, weirtest.Case{In: map[string]any{"n": 9}})
	if r.Error == nil || r.Error.Code != engine.CodeDepth {
		t.Errorf("nine below the first: the run %s: %v", r.Status, r.Error)
	}
}

func TestRetryRunsAFailedChildAgain(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: stubborn
nodes:
  child: {type: flow, retry: {attempts: 2, on: [refused]}, with: {flow: never.yaml}}
`, weirtest.Case{Files: map[string]string{"never.yaml": "weir: 1\nname: never\nnodes: {stop: {type: fail, with: {code: refused, message: No.}}}\n"}})
	if r.Error == nil || r.Error.Code != "refused" || !strings.HasPrefix(r.Error.Error(), "child>stop: No. (") {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	runs := map[string]bool{}
	for _, e := range r.Events {
		if w, ok := e.(*engine.NodeWaiting); ok {
			runs[w.Interrupts[0].Child.Run] = true
		}
	}
	if len(runs) != 2 {
		t.Errorf("two attempts began the children %v", runs)
	}
}

func TestGoFlowsMayReferToFlowValues(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := open(t, weir.Options{Replay: recorded.NewScriptedTurns(weirtest.Says("hello"), nil)})
	child, err := w.Parse("child.yaml", []byte(talkChild))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Define(weir.Definition{
		Name: "parent",
		Nodes: map[string]weir.NodeSpec{
			"each": {Type: "forEach", In: map[string]any{"items": []any{"x"}}, With: map[string]any{"body": map[string]any{
				"nodes":   map[string]weir.NodeSpec{"child": {Type: "flow", With: map[string]any{"flow": child}}},
				"outputs": map[string]any{"result": "{{ child.said }}"},
			}}},
		},
		Outputs: map[string]any{"said": "{{ each.results }}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Uses) != 1 || f.Uses[0] != (flow.Use{Ref: "child", Flow: child}) {
		t.Errorf("it uses %v", f.Uses)
	}
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if said, _ := r.Outputs.Get("said"); err != nil || !reflect.DeepEqual(said, []any{"hello"}) {
		t.Errorf("the run %s with %v: %v, %v", r.Status, r.Outputs, r.Error, err)
	}
}
