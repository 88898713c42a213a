package flowtest_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

func TestFilesAreFound(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"a.test.yaml": "", "b.yaml": ""})
	for _, name := range []string{"sub/c.test.yml", "sub/d.test.json", ".git/e.test.yaml", "node_modules/f.test.yaml"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	for _, c := range []struct{ paths, want []string }{
		{in(""), in("a.test.yaml", "sub/c.test.yml", "sub/d.test.json")},
		{in("..."), in("a.test.yaml", "sub/c.test.yml", "sub/d.test.json")},
		{in("sub", "sub/c.test.yml"), in("sub/c.test.yml", "sub/d.test.json")},
	} {
		got, err := flowtest.Find(c.paths...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; expected %q", c.paths, got, err, c.want)
		}
	}
	for _, name := range []string{"b.yaml", "none", "none/..."} {
		if got, err := flowtest.Find(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is %q, expected an error", name, got)
		}
	}
}

func TestReportKeepsFileOrderAndWritesJUnit(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"f.yaml":      "weir: 1\nname: f\nnodes: {a: {type: template, with: {text: x}}}\noutputs: {a: \"{{ a.text }}\"}",
		"a.test.yaml": "flow: f.yaml\ntests: [{name: good}, {name: bad, expect: {outputs: {a: '<y>'}}}, {name: later, skip: not yet}]",
		"b.test.yaml": "flow: f.yaml\ntests: [{name: x, expct: 1}]",
		"c.test.yaml": "flow: f.yaml\ntests: [{name: good, expect: {outputs: {a: x}}}]",
	})
	paths, err := flowtest.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	r := flowtest.Run(t.Context(), paths, flowtest.Options{Report: func(f flowtest.FileResult) { seen = append(seen, f.Path) }})
	if !slices.Equal(seen, paths) || r.Passed != 2 || r.Failed != 1 || r.Skipped != 1 || r.Invalid != 1 || r.OK() {
		t.Errorf("%q: %+v", seen, r)
	}
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tests != 5 || doc.Failures != 1 || doc.Errors != 1 || doc.Skipped != 1 || len(doc.Suites) != 3 {
		t.Fatalf("%+v", doc)
	}
	a := doc.Suites[0].Cases
	if a[0].Failure != nil || a[1].Failure == nil || !strings.Contains(a[1].Failure.Text, `expected "<y>", got "x"`) ||
		a[2].Skipped == nil || doc.Suites[1].Cases[0].Error == nil {
		t.Errorf("%s", b.String())
	}

	some := flowtest.Run(t.Context(), paths, flowtest.Options{Run: regexp.MustCompile(`c\.test\.yaml: good|later`)})
	if some.Passed != 1 || some.Skipped != 1 || some.Failed != 0 {
		t.Errorf("%+v", some)
	}
}

func TestGoldenFileIsWrittenAndCompared(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"f.yaml":      "weir: 1\nname: f\ninputs: {v: {type: text}}\n" + gate[1:],
		"f.test.yaml": "tests: [{name: a, answers: {ask: yes}, expect: {golden: f.golden.yaml}}]",
	})
	paths := []string{filepath.Join(dir, "f.test.yaml")}
	run := func(update bool) flowtest.Result {
		r := flowtest.Run(t.Context(), paths, flowtest.Options{Update: update})
		if len(r.Files[0].Tests) != 1 {
			t.Fatalf("%+v", r.Files[0])
		}
		return r.Files[0].Tests[0]
	}
	if r := run(false); r.Status != flowtest.Failed || !strings.Contains(r.Failures[0].Message, "--update") {
		t.Errorf("without a file: %+v", r)
	}
	golden := filepath.Join(dir, "f.golden.yaml")
	if r := run(true); r.Status != flowtest.Passed || r.Updated != golden {
		t.Errorf("written: %+v", r)
	}
	if r := run(false); r.Status != flowtest.Passed || r.Updated != "" {
		t.Errorf("again: %+v", r)
	}
	text, err := os.ReadFile(golden)
	if err != nil || !strings.Contains(string(text), "result: sent") {
		t.Fatalf("%s, %v", text, err)
	}
	if err := os.WriteFile(golden, bytes.Replace(text, []byte("result: sent"), []byte("result: kept"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(false)
	if r.Status != flowtest.Failed || !slices.Contains(r.Failures[0].Diff, flowtest.Line{Mark: '-', Text: "  result: kept"}) {
		t.Errorf("changed: %+v", r)
	}
}

func TestRecordingReplaysAndReportsDifferences(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"f.yaml": "weir: 1\nname: f" + two,
		"f.test.yaml": `
tests:
  - {name: the same, replay: f.jsonl, expect: {outputs: {a: one, b: two}}}
  - {name: another, replay: f.jsonl, inputs: {n: 2}}
`,
	})
	rec, err := recorded.NewFileRecorder(filepath.Join(dir, "f.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	model := recorded.NewScriptedTurns([]recorded.Turn{says("one"), says("two")}, nil)
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"openai": rec.Wrap(model)}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Load(filepath.Join(dir, "f.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "another"})
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "f.test.yaml")}, flowtest.Options{})
	got := reportText(&r.Files[0])
	if !strings.Contains(got, "passed the same") || !strings.Contains(got, "failed another") || !strings.Contains(got, "First 2") {
		t.Error(got)
	}
}

func says(text string) recorded.Turn {
	t := recorded.Turn{Usage: llm.Usage{Input: 1, Output: 1}}
	t.Message.Text = text
	return t
}

func TestMockedToolsReturnResults(t *testing.T) {
	t.Parallel()
	const flow = `
context: {model: openai/gpt-5-mini}
nodes: {ask: {type: llmRequest, in: {message: Hi, tools: [look, find]}}}
outputs: {a: "{{ ask.text }}"}
`
	passes(t, flow, `
defaults:
  script:
    - calls: [{tool: look, arguments: {at: 1}}, {tool: look, arguments: {at: 2}}, find]
    - calls: {tool: look, arguments: '{"at": 1}'}
    - Done.
tests:
  - name: by the arguments, and in order
    tools:
      look: [{when: {at: 2}, result: two}, {when: {at: 1}, result: one}, {when: {at: 1}, error: broken}]
      find: {description: Finds., parameters: {type: object}, result: {n: 3}}
    expect:
      outputs: {a: Done.}
      toolCalls: [{tool: look, arguments: {at: 1}}, {tool: look, arguments: {at: 2}}, find, look]
      messages:
        - Hi
        - {role: assistant, calls: [look, {arguments: {at: 2}}, find]}
        - tool: one
        - tool: two
        - {role: tool, name: find, text: {$json: {n: 3}}}
        - {calls: [look]}
        - {tool: broken, failed: true}
        - assistant: Done.
  - name: a person is asked for leave
    script: [{calls: look}, Done.]
    tools: {look: {approve: always, result: seen}, find: nothing}
    answers: {ask: approve}
    expect: {questions: [{kind: approval}], toolCalls: [look]}
  - name: a tool asks a person
    script: [{calls: look}, Done.]
    tools: {look: {asks: {who: Who?, where: {prompt: Where?, schema: {type: object, properties: {row: {type: integer}}}}}, result: seen}, find: nothing}
    answers: {"ask:input.1.1.1#1": Ada, ask: {row: 2}}
    expect: {questions: [{kind: input}, {kind: input}], toolCalls: [look], messages: {$subset: [{tool: seen}]}}
`)
	fails(t, flowtest.Failed, flow, `
tests:
  - name: a tool is missing
    script: [{calls: look}, Done.]
    tools: {look: seen}
  - name: another argument
    script: [{calls: {tool: look, arguments: {at: 3}}}, Done.]
    tools: {look: [{when: {at: 1}, result: one}], find: nothing}
    expect: {toolCalls: [{arguments: {at: 1}}], messages: {$subset: [{tool: {$contains: "no result for tool look with the arguments {\"at\":3}"}}]}}
`, "find", "f.test.yaml:9:43: toolCalls[0].arguments.at: expected 1, got 3")
}
