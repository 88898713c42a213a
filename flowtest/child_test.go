package flowtest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

func TestChildFlowNodesAreMockedAnsweredAndChecked(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"outer.yaml": `
weir: 1
name: outer
context: {model: openai/gpt-5-mini}
nodes:
  slow: {type: wait, with: {for: 900h}}
  inner: {type: flow, in: {n: 3}, with: {flow: inner.yaml}}
  last: {type: llmRequest, in: {message: "Last: {{ inner.text }}"}}
outputs: {text: "{{ last.text }}"}
`,
		"inner.yaml": `
weir: 1
name: inner
context: {model: openai/gpt-5-mini}
inputs: {n: {type: number, required: true}}
nodes:
  rest: {type: wait, with: {for: 100h}}
  ask: {type: userInput, after: rest, with: {prompt: "How many of {{ run.inputs.n }}?", timeout: 10h}}
  draft: {type: llmRequest, in: {message: "Draft {{ ask.text }}"}}
outputs: {text: "{{ draft.text }}"}
`,
		"outer.test.yaml": `
tests:
  - name: everything inside is real
    script: {last: done, inner>draft: drafted}
    answers: {inner>ask: two}
    expect:
      outputs: {text: done}
      path: {order: [inner, "inner>rest", inner>ask, inner>draft, last], ran: slow}
      questions: [{node: inner>ask, prompt: How many of 3?, answer: two}]
      messages: {main: ["Last: drafted", done], inner>main: [Draft two, drafted]}
      requests: [{node: inner>draft}, {node: last}]
      usage: {calls: 2}
  - name: one node inside is mocked
    script: [done]
    mocks: {inner>draft: mocked}
    answers: {"inner>ask:ask#1": two}
    expect: {requests: ["Last: mocked"]}
  - name: no answer in the child
    expect: {error: {code: answer_timeout, node: inner}, path: {failed: inner>ask}}
  - name: the flow inside is mocked
    script: [done]
    mocks: {inner: {outputs: {text: other}, delay: 5h}}
    expect: {requests: ["Last: other"], path: [inner, slow, last]}
`,
		"bad.test.yaml": `
flow: outer.yaml
tests:
  - {name: a, mocks: {inner>drft: x, last>draft: y, inner: {outputs: {txt: 1}}}, answers: {inner>asks: 1}}
`,
	})
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "bad.test.yaml"), filepath.Join(dir, "outer.test.yaml")}, flowtest.Options{})
	if f := &r.Files[1]; f.Status != flowtest.Passed || len(f.Tests) != 4 {
		t.Error(reportText(f))
	}
	const want = `bad.test.yaml:4:23: flow outer has no node "inner>drft" (unknown_node)
  hint: did you mean inner>draft?
bad.test.yaml:4:38: flow outer has no node "last>draft" (unknown_node)
bad.test.yaml:4:71: node inner (flow) has no output "txt"; it has text, outputs, run (unknown_port)
  hint: did you mean text?
bad.test.yaml:4:92: flow outer has no node "inner>asks" (unknown_node)
  hint: did you mean inner>ask?
`
	if got := reportText(&r.Files[0]); got != want {
		t.Errorf("got:\n%s\nexpected:\n%s", got, want)
	}
}
