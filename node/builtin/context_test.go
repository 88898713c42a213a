package builtin_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// Each flow says "hi" once, however the person's words reach the model.
func TestUserMessageIsAddedOnce(t *testing.T) {
	for name, nodes := range map[string]string{
		"by message": `
  ask: {type: userInput}
  reply: {type: llmRequest, in: {message: "{{ ask.text }}"}}`,
		"by message, already in the history": `
  ask: {type: userInput, with: {history: true}}
  reply: {type: llmRequest, in: {message: "{{ ask.text }}"}}`,
		"by the history alone": `
  ask: {type: userInput, with: {history: true}}
  reply: {type: llmRequest, after: ask}`,
		"by a context edge": `
  ask: {type: userInput}
  reply: {type: llmRequest, in: {context: "{{ ask.context }}"}}`,
		"by a context edge, already in the history": `
  ask: {type: userInput, with: {history: true}}
  reply: {type: llmRequest, in: {context: "{{ ask.context }}"}}`,
		"by both": `
  ask: {type: userInput}
  reply: {type: llmRequest, in: {context: "{{ ask.context }}", message: "{{ ask.text }}"}}`,
		"by both, already in the history": `
  ask: {type: userInput, with: {history: true}}
  reply: {type: llmRequest, in: {context: "{{ ask.context }}", message: "{{ ask.text }}"}}`,
		"through a merge": `
  ask: {type: userInput, with: {history: true}}
  pass: {type: merge, in: {value: ["{{ ask.text }}"]}}
  reply: {type: llmRequest, in: {message: "{{ pass.value }}"}}`,
		"through a portal": `
  ask: {type: userInput, with: {history: true}}
  out: {type: portalOut, in: {value: "{{ ask.text }}"}, with: {name: words}}
  enter: {type: portalIn, with: {name: words}}
  reply: {type: llmRequest, in: {message: "{{ enter.value }}"}}`,
		"preset": `
  ask: {type: manualInput, with: {text: hi, history: true}}
  reply: {type: llmRequest, in: {context: "{{ ask.context }}", message: "{{ ask.text }}"}}`,
		"as a message": `
  make: {type: transform, with: {expr: "{'id': 'm1', 'role': 'user', 'text': 'hi'}"}}
  tell: {type: injectMessages, in: {messages: "{{ make.value }}"}}
  reply: {type: llmRequest, in: {message: "{{ make.value }}", context: "{{ tell.context }}"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			model := &orderedModel{turns: []string{"hello"}}
			r := play(t, weir.Options{Providers: models(model)},
				"weir: 1\nname: once\ncontext: {model: script/demo}\nnodes:"+nodes+"\noutputs: {reply: \"{{ reply.text }}\"}\n",
				nil, map[string]any{"ask": "hi"})
			if r.Status != engine.Completed {
				t.Fatalf("the run %s: %v", r.Status, r.Error)
			}
			if got := model.said(0); !reflect.DeepEqual(got, []string{"user: hi"}) {
				t.Errorf("the model received %q", got)
			}
		})
	}
}

func TestMainContextGrowsTurnByTurn(t *testing.T) {
	model := &orderedModel{turns: []string{"b", "d"}}
	r := play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: grow
context: {model: script/demo}
nodes:
  first: {type: llmRequest, in: {message: "a"}}
  second: {type: llmRequest, in: {context: "{{ first.context }}", message: "c"}}
outputs: {usage: "{{ second.usage }}"}
`, nil, nil)
	if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: c"}) {
		t.Errorf("the second call received %q", got)
	}
	usage, _ := r.Outputs.Get("usage")
	want := map[string]any{"input": int64(10), "cached": int64(0), "output": int64(2), "reasoning": int64(0), "calls": int64(1)}
	if !reflect.DeepEqual(usage, want) {
		t.Errorf("the usage is %v, expected %v", usage, want)
	}
}

func TestIsolatedContextDoesNotChangeMain(t *testing.T) {
	model := &orderedModel{turns: []string{"main 1", "aside 1", "main 2"}}
	play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: aside
context: {model: script/demo, system: Be brief.}
nodes:
  one: {type: llmRequest, in: {message: "to main"}}
  aside: {type: newContext, after: one, with: {system: Be rude.}}
  tell: {type: injectMessages, in: {context: "{{ aside.context }}"}, with: {messages: [{role: assistant, text: injected}]}}
  two: {type: llmRequest, in: {context: "{{ tell.context }}", message: "to the side"}}
  three: {type: llmRequest, after: two, in: {message: "to main again"}}
outputs: {last: "{{ three.text }}"}
`, nil, nil)
	if got := model.said(1); !reflect.DeepEqual(got, []string{"assistant: injected", "user: to the side"}) {
		t.Errorf("the side received %q", got)
	}
	if got := model.said(2); !reflect.DeepEqual(got, []string{"user: to main", "assistant: main 1", "user: to main again"}) {
		t.Errorf("main received %q", got)
	}
	if a, b := model.asked[1].System, model.asked[2].System; a != "Be rude." || b != "Be brief." {
		t.Errorf("the instructions were %q and %q", a, b)
	}
}

func TestForkedContextDivergesFromItsParent(t *testing.T) {
	model := &orderedModel{turns: []string{"b", "d", "f"}}
	r := play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: fork
context: {model: script/demo, system: Be brief.}
nodes:
  one: {type: llmRequest, in: {message: "a"}}
  fork: {type: newContext, in: {context: "{{ one.context }}"}, with: {base: fork}}
  two: {type: llmRequest, in: {context: "{{ fork.context }}", message: "c"}}
  three: {type: llmRequest, after: two, in: {message: "e"}}
outputs: {last: "{{ three.text }}"}
`, nil, nil)
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: c"}) {
		t.Errorf("the fork received %q", got)
	}
	if got := model.said(2); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: e"}) {
		t.Errorf("main received %q", got)
	}
	if model.asked[1].System != "Be brief." {
		t.Errorf("the fork's instructions are %q", model.asked[1].System)
	}
}

func TestSkipHistoryReadsAndNeverWrites(t *testing.T) {
	model := &orderedModel{turns: []string{"b", "x", "d"}}
	play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: skip
context: {model: script/demo}
nodes:
  one: {type: llmRequest, in: {message: "a"}}
  aside: {type: llmRequest, after: one, in: {message: "quick?"}, with: {skipHistory: true}}
  two: {type: llmRequest, after: aside, in: {message: "c"}}
outputs: {aside: "{{ aside.text }}"}
`, nil, nil)
	if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: quick?"}) {
		t.Errorf("the aside received %q", got)
	}
	if got := model.said(2); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: c"}) {
		t.Errorf("the next turn received %q", got)
	}
}

func TestSkipHistoryMayRepeatEarlierText(t *testing.T) {
	model := &orderedModel{turns: []string{"b", "x"}}
	play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: again
context: {model: script/demo}
nodes:
  ask: {type: manualInput, with: {text: a}}
  one: {type: llmRequest, in: {message: "{{ ask.text }}"}}
  aside: {type: llmRequest, after: one, in: {message: "{{ ask.text }}"}, with: {skipHistory: true}}
outputs: {aside: "{{ aside.text }}"}
`, nil, nil)
	if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: a"}) {
		t.Errorf("the aside received %q", got)
	}
}

func TestInjectedMessagesReplaceThoseOfTheirID(t *testing.T) {
	model := &orderedModel{turns: []string{"ok"}}
	r := play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: upsert
context: {model: script/demo}
nodes:
  one: {type: injectMessages, with: {messages: [{id: facts, role: user, text: old}, {role: assistant, text: noted}]}}
  two:
    type: injectMessages
    in: {context: "{{ one.context }}", messages: [{id: facts, role: user, text: "new {{ run.flow }}"}, "more"]}
  ask: {type: llmRequest, in: {context: "{{ two.context }}", message: go}}
outputs: {ids: "{{ two.ids }}"}
`, nil, nil)
	if got := model.said(0); !reflect.DeepEqual(got, []string{"user: new upsert", "assistant: noted", "user: more", "user: go"}) {
		t.Errorf("the model received %q", got)
	}
	if ids, _ := r.Outputs.Get("ids"); !reflect.DeepEqual(ids, []any{"facts", "two.2"}) {
		t.Errorf("the ids are %v", ids)
	}
}

func TestTextFromAPersonIsNeverEvaluated(t *testing.T) {
	model := &orderedModel{turns: []string{"{{ run.id }}", "fine"}}
	r := play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: literal
context: {model: script/demo}
nodes:
  ask: {type: userInput}
  one: {type: llmRequest, in: {message: "{{ ask.text }}"}}
  fill: {type: template, in: {a: "{{ ask.text }}", b: "{{ one.text }}"}, with: {text: "{{ inputs.a }} {{ inputs.b }}"}}
outputs: {all: "{{ fill.text }}"}
`, nil, map[string]any{"ask": "{{ secrets.KEY }}"})
	if all, _ := r.Outputs.Get("all"); all != "{{ secrets.KEY }} {{ run.id }}" {
		t.Errorf("the text became %q", all)
	}
}

func TestToolTurnIsCommittedAsAWhole(t *testing.T) {
	var got []string
	weather := &tool.Tool{
		Name: "weather", Description: "Tells the weather.", ReadOnly: true,
		Call: func(_ context.Context, c tool.Call) (string, error) {
			got = append(got, c.Arguments)
			if c.Arguments == `{"city":"nowhere"}` {
				return "", errors.New("no such city")
			}
			return "rain", nil
		},
	}
	model := &orderedModel{turns: []string{`call weather {"city":"nowhere"}`, `call weather {"city":"Bonn"}`, "Rain in Bonn."}}
	r := play(t, weir.Options{Providers: models(model), Tools: []*weir.Tool{weather}}, `
weir: 1
name: weather
context: {model: script/demo}
nodes:
  pick: {type: tools, with: {tools: auto}}
  ask: {type: llmRequest, in: {message: "Weather?", tools: "{{ pick.tools }}"}}
outputs: {text: "{{ ask.text }}", names: "{{ pick.toolNames }}", usage: "{{ ask.usage }}"}
`, nil, nil)
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	if names, _ := r.Outputs.Get("names"); !reflect.DeepEqual(names, []any{"weather"}) {
		t.Errorf("the tools are %v", names)
	}
	if !reflect.DeepEqual(got, []string{`{"city":"nowhere"}`, `{"city":"Bonn"}`}) {
		t.Errorf("the tool was called with %q", got)
	}
	want := []string{"user: Weather?", "assistant: ", "tool: no such city", "assistant: ", "tool: rain"}
	if said := model.said(2); !reflect.DeepEqual(said, want) {
		t.Errorf("the last call received %q", said)
	}
	if native := string(model.asked[2].Messages[1].Native); native != `{"z":1.0,"a":12345678901234567890}` {
		t.Errorf("native blocks came back as %s", native)
	}
}

func TestUnofferedToolFailsTheRequest(t *testing.T) {
	r := play(t, weir.Options{Providers: models(&orderedModel{})}, `
weir: 1
name: no-tool
context: {model: script/demo}
nodes:
  ask: {type: llmRequest, in: {message: "Weather?", tools: [weather]}}
outputs: {text: "{{ ask.text }}"}
`, nil, nil)
	if e := mustFail(t, r); e.Code != builtin.CodeToolUnknown || e.Node != "ask" {
		t.Errorf("the error is %+v", e)
	}
}

func TestSchemaMismatchIsRepairedOnceThenFails(t *testing.T) {
	for _, bad := range []string{"not json", `{"n": "x"}`} {
		flow := `
weir: 1
name: schema
context: {model: script/demo}
nodes:
  ask:
    type: llmRequest
    in: {message: "n?"}
    with: {schema: {type: object, properties: {n: {type: integer}}}}
outputs: {n: "{{ ask.value.n }}"}
`
		r := play(t, weir.Options{Providers: models(&orderedModel{turns: []string{bad, bad}})}, flow, nil, nil)
		if e := mustFail(t, r); e.Code != engine.CodeModelAnswer {
			t.Errorf("%s: the error is %+v, expected %s", bad, e, engine.CodeModelAnswer)
		}
		r = play(t, weir.Options{Providers: models(&orderedModel{turns: []string{bad, `{"n": 3}`}})}, flow, nil, nil)
		if n, err := weir.Output[int](r, "n"); err != nil || n != 3 {
			t.Errorf("%s, then 3: got %v, %v", bad, n, err)
		}
	}
}

func TestEmptyConversationIsAnError(t *testing.T) {
	r := play(t, weir.Options{Providers: models(&orderedModel{turns: []string{"?"}})}, `
weir: 1
name: silence
context: {model: script/demo}
nodes:
  ask: {type: llmRequest}
outputs: {text: "{{ ask.text }}"}
`, nil, nil)
	if e := mustFail(t, r); e.Code != "model_invalid_request" {
		t.Errorf("the error is %+v", e)
	}
}

func TestAnsweredMessageIsNotRepeated(t *testing.T) {
	for name, edge := range map[string]string{"in a row": "one.context", "side by side": "ask.context"} {
		model := &orderedModel{turns: []string{"b", "c"}}
		play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: row
context: {model: script/demo}
nodes:
  ask: {type: userInput}
  one: {type: llmRequest, in: {context: "{{ ask.context }}"}}
  two: {type: llmRequest, after: one, in: {context: "{{ `+edge+` }}"}}
outputs: {last: "{{ two.text }}"}
`, nil, map[string]any{"ask": "a"})
		if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a", "assistant: b"}) {
			t.Errorf("%s: the second call received %q", name, got)
		}
	}
}

func TestRetryAnswersTheSameMessageOnce(t *testing.T) {
	model := &orderedModel{turns: []string{"fail model_filtered", "b", "d"}}
	r := play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: second
context: {model: script/demo}
nodes:
  ask: {type: userInput}
  one:
    type: llmRequest
    in: {message: "{{ ask.text }}"}
    retry: {attempts: 2, backoff: 1ms, on: [model_filtered]}
  two: {type: llmRequest, after: one, in: {message: c}}
outputs: {last: "{{ two.text }}"}
`, nil, map[string]any{"ask": "a"})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	if got := model.said(1); !reflect.DeepEqual(got, []string{"user: a"}) {
		t.Errorf("the second attempt received %q", got)
	}
	if got := model.said(2); !reflect.DeepEqual(got, []string{"user: a", "assistant: b", "user: c"}) {
		t.Errorf("the next turn received %q", got)
	}
}

func TestInjectedMessagesDoNotHideTheUserMessage(t *testing.T) {
	model := &orderedModel{turns: []string{"b"}}
	play(t, weir.Options{Providers: models(model)}, `
weir: 1
name: between
context: {model: script/demo}
nodes:
  ask: {type: userInput}
  tell: {type: injectMessages, in: {context: "{{ ask.context }}"}, with: {messages: [{text: note}]}}
  one: {type: llmRequest, in: {context: "{{ tell.context }}"}}
outputs: {last: "{{ one.text }}"}
`, nil, map[string]any{"ask": "a"})
	if got := model.said(0); !reflect.DeepEqual(got, []string{"user: note", "user: a"}) {
		t.Errorf("the model received %q", got)
	}
}

// A node that gets a context by an edge and no message takes what the node before it put out.
func TestAnUnwiredMessageIsTheCurrentOutputOfTheContext(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: chain
context: {model: any/model}
nodes:
  text: {type: manualInput, with: {text: Take this.}}
  ask: {type: llmRequest, in: {context: "{{ text.context }}"}}
  sum: {type: summarize, in: {context: "{{ ask.context }}"}}
outputs: {answer: "{{ ask.text }}"}
`, weirtest.Case{Script: weirtest.Says("Taken.", "In short.")})
	if r.Error != nil || len(r.Requests) != 2 {
		t.Fatalf("%d requests: %v", len(r.Requests), r.Error)
	}
	last := r.Requests[0].Messages[len(r.Requests[0].Messages)-1]
	if last.Role != convo.User || last.Text != "Take this." {
		t.Errorf("the model was sent %+v", last)
	}
}
