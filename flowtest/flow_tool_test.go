package flowtest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

func TestAFlowIsOfferedAsAToolAndItsQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"outer.yaml": `
weir: 1
name: outer
context: {model: openai/gpt-5-mini}
nodes:
  work: {type: agent, in: {message: Book it., tools: [booking]}}
  direct: {type: tool, after: work, with: {tool: booking, arguments: {seat: 7}}}
outputs: {text: "{{ work.text }}", direct: "{{ direct.text }}"}
`,
		"inner.yaml": `
weir: 1
name: inner
description: Books a seat.
context: {model: openai/gpt-5-mini}
inputs: {seat: {type: number, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Seat {{ run.inputs.seat }} for whom?"}}
  note: {type: llmRequest, in: {message: "Note {{ ask.text }}"}}
outputs: {text: "{{ note.text }}"}
`,
		"outer.test.yaml": `
defaults:
  tools: {booking: {flow: inner.yaml}}
  script:
    work: [{calls: [{tool: booking, arguments: {seat: 3}}]}, done]
    work>note: noted by the agent
    direct>note: noted directly
tests:
  - name: everything inside is real
    answers: {work>ask: Ada, direct>ask: Bo}
    expect:
      outputs: {text: done, direct: noted directly}
      questions: [{node: work>ask, prompt: Seat 3 for whom?, answer: Ada}, {node: direct>ask, prompt: Seat 7 for whom?, answer: Bo}]
      path: {order: [work, work>ask, work>note, direct, direct>ask, direct>note]}
  - name: a call needs an approval
    tools: {booking: {flow: inner.yaml, approve: once}}
    answers: {work: approve, work>ask: Ada, direct>ask: Bo}
    expect: {outputs: {text: done, direct: noted directly}}
  - name: a node inside is mocked
    mocks: {work>ask: Cy, direct>ask: Cy}
    expect: {questions: []}
  - name: a question without an answer leaves the run paused
    expect: {status: paused}
`,
		"bad.test.yaml": `
flow: outer.yaml
tests:
  - name: bad
    tools: {booking: {flow: missing.yaml}}
  - name: keys
    tools: {booking: {flow: inner.yaml, results: [x], readOnly: true}}
    answers: {work>other: x}
`,
	})
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "bad.test.yaml"), filepath.Join(dir, "outer.test.yaml")}, flowtest.Options{})
	if f := &r.Files[1]; f.Status != flowtest.Passed || len(f.Tests) != 4 {
		t.Error(reportText(f))
	}
	const want = `bad.test.yaml:5:29: load flow: stat missing.yaml: no such file or directory (unreadable)
  hint: the path is relative to this file
bad.test.yaml:7:41: a flow as a tool has no key "results"; expected one of flow, description, approve (unknown_key)
bad.test.yaml:7:55: a flow as a tool has no key "readOnly"; expected one of flow, description, approve (unknown_key)
bad.test.yaml:8:15: flow outer has no node "work>other" (unknown_node)
`
	if got := reportText(&r.Files[0]); got != want {
		t.Errorf("got:\n%s\nexpected:\n%s", got, want)
	}
}
