package flowtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

// files writes files into a folder of their own and returns it.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runTests runs the tests of one file over one flow.
func runTests(t *testing.T, flow, tests string) flowtest.FileResult {
	t.Helper()
	dir := files(t, map[string]string{"f.yaml": "weir: 1\nname: f\n" + flow, "f.test.yaml": tests})
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "f.test.yaml")}, flowtest.Options{})
	return r.Files[0]
}

// reportText is everything that a file's result says, without the folder.
func reportText(f *flowtest.FileResult) string {
	var b strings.Builder
	for _, p := range f.Problems {
		b.WriteString(p.String() + "\n")
	}
	b.WriteString(f.Error)
	for _, r := range f.Tests {
		b.WriteString(string(r.Status) + " " + r.Name + "\n")
		for i := range r.Failures {
			b.WriteString(r.Failures[i].String() + "\n")
		}
	}
	return strings.ReplaceAll(b.String(), filepath.Dir(f.Path)+string(filepath.Separator), "")
}

// passes wants every test of the file to pass.
func passes(t *testing.T, flow, tests string) {
	t.Helper()
	f := runTests(t, flow, tests)
	if f.Status != flowtest.Passed || len(f.Tests) == 0 {
		t.Errorf("the file is %s:\n%s", f.Status, reportText(&f))
	}
}

// fails wants the file to be what status says, and all of that to be said.
func fails(t *testing.T, status flowtest.Status, flow, tests string, says ...string) {
	t.Helper()
	f := runTests(t, flow, tests)
	got := reportText(&f)
	if f.Status != status {
		t.Errorf("the file is %s, expected %s:\n%s", f.Status, status, got)
	}
	for _, s := range says {
		if !strings.Contains(got, s) {
			t.Errorf("it is not said:\n%s\nonly:\n%s", s, got)
		}
	}
}

const two = `
context: {model: openai/gpt-5-mini}
inputs: {n: {type: number, default: 1}}
nodes:
  first: {type: llmRequest, in: {message: "First {{ run.inputs.n }}"}}
  second: {type: llmRequest, in: {message: "Second: {{ first.text }}"}}
outputs: {a: "{{ first.text }}", b: "{{ second.text }}"}
`

func TestModelFollowsTheScript(t *testing.T) {
	t.Parallel()
	passes(t, two, `
tests:
  - name: in the order of the calls
    script: [one, two]
    expect: {outputs: {a: one, b: two}, usage: {calls: 2}}
  - name: by node
    script: {second: two, first: one}
    expect: {outputs: {a: one, b: two}}
  - name: both
    script: {first: [{text: one, usage: {input: 1000000, output: 10}}], second: [{json: {x: [1]}}]}
    expect: {outputs: {a: one, b: {$json: {x: [1]}}}, cost: {$above: 0.1, $below: 1}, usage: {input: 1000000, tokens: 1000010}}
  - name: nothing at all where nodes are mocked
    mocks: {first: one, second: two}
    expect: {outputs: {a: one, b: two}, usage: {calls: 0}, cost: 0, messages: []}
`)
	fails(t, flowtest.Failed, two, `
tests:
  - name: too few
    script: [one]
  - name: too many
    script: [one, two, three, four]
  - name: a node that does not exist
    script: {first: one}
  - name: none
  - name: never
    mocks: {first: one}
    script: {first: one, second: two}
`,
		"failed too few\nf.test.yaml:3:5: status: expected completed, got failed: second: the script has 1 turn but the model was called again, by second",
		"f.test.yaml:6:13: script: the script has 4 turns and the model was called 2 times",
		"the script has no turn for second; it has first (replay_divergence)",
		"first calls the model, and the test says nothing of what it answers: add script: or replay:, or mock the node",
		"f.test.yaml:12:13: script: the script has a turn for first, which called no model",
	)
}

func TestScriptedModelErrorIsRetriedByNode(t *testing.T) {
	t.Parallel()
	passes(t, `
nodes:
  ask: {type: llmRequest, in: {message: Hi}, retry: {attempts: 3, backoff: 5m}, }
context: {model: openai/gpt-5-mini}
outputs: {a: "{{ ask.text }}"}
`, `
tests:
  - name: what passes is tried again after the backoff, which takes no time
    script: [{error: model_rate_limited}, {error: {code: model_overloaded, message: busy}}, Hello.]
    expect: {outputs: {a: Hello.}}
  - name: what does not pass is not
    script: [{error: model_auth}]
    expect: {error: {code: model_auth, node: ask}}
  - name: in the end it fails
    script: {ask: {error: model_unavailable}}
    expect: {error: model_unavailable}
`)
}

const gate = `
nodes:
  ask: {type: userInput, with: {prompt: "Send it?", schema: {type: string, enum: [yes, no]}}}
  route: {type: decision, in: {a: "{{ ask.text }}"}, with: {expr: inputs.a, branches: [yes, no]}}
  sent: {type: template, after: route.yes, with: {text: sent}}
  kept: {type: template, after: route.no, with: {text: kept}}
  end: {type: merge, in: {value: ["{{ sent.text }}", "{{ kept.text }}"]}}
outputs: {result: "{{ end.value }}"}
`

func TestPathsAndAnswers(t *testing.T) {
	t.Parallel()
	passes(t, gate, `
defaults: {answers: {ask: yes}}
tests:
  - name: yes
    expect: {outputs: {result: sent}, path: [ask, route, sent, end], questions: ["Send it?"]}
  - name: no
    answers: {"ask:ask#1": no}
    expect: {outputs: {result: kept}, path: {order: [route, kept], skipped: sent, notRun: [sent]}}
  - name: nobody
    answers: {ask: []}
    expect: {status: paused, questions: [{prompt: {$endsWith: "?"}, kind: input, node: ask}], path: {exactly: [ask]}}
  - name: the branch is mocked
    mocks: {route: {branch: no}}
    expect: {outputs: {result: kept}}
`)
	fails(t, flowtest.Failed, gate, `
tests:
  - name: no answer
    expect: {outputs: {result: sent}}
  - name: a wrong answer
    answers: {ask: maybe}
  - name: one too many
    answers: {ask: [yes, yes]}
  - name: another way
    answers: {ask: yes}
    expect: {path: [ask, route, kept, end]}
  - name: ways that were not taken
    answers: {ask: yes}
    expect: {path: {order: [end, ask], ran: kept, failed: sent, skipped: [sent], notRun: sent}}
`,
		"f.test.yaml:4:13: status: the question has no answer, and the test expects the run to be completed\n  + ask:ask#1 asks: Send it? [\"yes\",\"no\"]",
		"f.test.yaml:6:20: answers.ask: the answer does not fit: value must be one of",
		"f.test.yaml:8:26: answers.ask: 2 answers were given and 1 asked for",
		"f.test.yaml:11:20: path: other nodes ran, or in another order\n    ask\n    route\n  - kept\n  + sent\n    end",
		"path.order: ask did not run after end\n    ran: ask, route, sent, end",
		"path: expected kept to run, and it was skipped",
		"path: expected sent to fail, and it completed",
		"path: expected sent to be skipped, and it completed",
		"path.notRun: expected sent not to run, and it completed",
	)
}

func TestInvalidFileReportsAllProblems(t *testing.T) {
	t.Parallel()
	fails(t, flowtest.Invalid, gate, `
tets: []
tests:
  - {name: a, expect: {status: complete, outputs: {result: {$contain: x}}, path: [snt]}}
  - name: a
    mocks: {end: {value: 1, error: x}, sent: {outputs: {text: [1], txt: a}}, route: {branch: maybe}, kept: {}, ask: {delay: soon}}
    answers: {aks: 1}
    tools: {"": x, look: {rslt: 1}}
    script: [{calls: [{arguments: {}}]}, {txt: a}, {}]
    target: nobody
    inputs: [1]
  - name: b
    script: []
    replay: none.jsonl
    timeout: -1s
    expect: {outputs: {result: {$matches: "("}}, usage: {cals: 1}, messages: [{usr: a}], error: {cod: x}}
  - {}
`,
		`f.test.yaml:2:1: a test file has no key "tets"; expected one of flow, description, defaults, tests (unknown_key)`+"\n  hint: did you mean tests?",
		`f.test.yaml:4:32: status must be one of completed, failed, paused; got "complete"`,
		"f.test.yaml:4:61: there is no matcher $contain (unknown_key)\n  hint: did you mean $contains?",
		"f.test.yaml:4:83: flow f has no node \"snt\" (unknown_node)\n  hint: did you mean sent?",
		`two tests are named "a"; the first at line 4`,
		"a mock has one of value, outputs, error and real",
		"output text of node sent (template): expected text, got a list (type_mismatch)",
		`node sent (template) has no output "txt"; it has text`,
		`node route (decision) has no branch "maybe"; it has yes, no`,
		"a mock says what the node does",
		`delay must be a duration; got "soon"`,
		`flow f has no node "aks"`,
		`the result of a tool has no key "rslt"`,
		"a call has a tool",
		`a turn has no key "txt"`,
		"a turn has text, json, calls or error",
		`flow f has no node "nobody"`,
		"inputs must be an object of values by the name of the input; got a list",
		"a test has a script or a replay, not both",
		`timeout must be a duration; got "-1s"`,
		`"(" is not a regular expression`,
		`usage has no key "cals"`,
		`a message has no key "usr"`,
		`error has no key "cod"`,
		"a test has a name",
	)
	fails(t, flowtest.Invalid, "nodes: {a: {type: tmplate}}", "tests: [{name: x, expct: 1}]",
		"f.yaml is not a valid flow", "f.yaml:3:19: the node type \"tmplate\" does not exist", `a test has no key "expct"`)
	fails(t, flowtest.Invalid, gate, "", "a test file must be an object; got null")
	fails(t, flowtest.Invalid, gate, "flow: g.yaml\ntests: [{name: a}]", "f.test.yaml:1:7: ", "g.yaml", "the path is relative to this file")
	fails(t, flowtest.Invalid, gate, "tests: [", "f.test.yaml:2:1: not YAML")
}

func TestNullRemovesDefault(t *testing.T) {
	t.Parallel()
	passes(t, gate, `
defaults: {answers: {ask: yes}, expect: {outputs: {result: sent}}}
tests:
  - name: the defaults
  - name: no answers, another end
    answers: null
    expect: {outputs: null, status: paused}
  - name: nothing is expected
    answers: {ask: no}
    expect: null
`)
}

func TestBreakpointIsAnsweredOnlyByID(t *testing.T) {
	t.Parallel()
	const flow = "nodes: {ask: {type: userInput, interruptBefore: true, with: {prompt: Well}}}\noutputs: {a: \"{{ ask.text }}\"}"
	passes(t, flow, `
tests:
  - name: let through, then asked
    answers: {"ask:before#1": true, ask: yes}
    expect: {outputs: {a: yes}, questions: [{kind: break}, Well]}
  - name: not let through
    answers: {ask: []}
    expect: {status: paused, path: {notRun: ask}}
`)
	fails(t, flowtest.Failed, flow, "tests: [{name: x, answers: {ask: yes}}]", "ask:before#1 asks: paused before ask", "or this id")
}

func TestInvalidInputsFailTheTest(t *testing.T) {
	t.Parallel()
	passes(t, two, "tests: [{name: x, inputs: {n: x, m: 1}, expect: {error: {code: input_invalid, message: {$contains: 'no input \"m\"'}}, outputs: {}}}]")
	fails(t, flowtest.Failed, two, "tests: [{name: x, inputs: {n: x, m: 1}}]",
		"expected completed, got failed: input \"n\": expected number, got a text\n    the flow has no input \"m\"")
}
