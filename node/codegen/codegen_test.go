package codegen_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/weirtest"
)

// readingFlow is a flow whose node has code written that reads an amount.
const readingFlow = `
weir: 1
name: reading
context: {model: script/demo}
inputs:
  invoice: {type: text, required: true}
nodes:
  read:
    type: action
    in: {invoice: "{{ run.inputs.invoice }}"}
    with: {prompt: "Read the amount of the invoice into amount.", learn: false}
outputs: {value: "{{ read.value }}"}
`

// What the agents' models say, as a good model does.
const (
	noAnalysis  = `{"needs_analysis": false, "complexity": "low", "reason": "It is a text."}`
	analysis    = `{"needs_analysis": true, "complexity": "medium", "hint": "How is the amount written?"}`
	goodVerdict = `{"valid": true, "task_completed": true, "changes_made": true, "reason": "The amount is there."}`
	lookAtData  = "```python\nimport json\nprint(json.dumps({'separator': ' EUR', 'first': inputs['invoice'][:8]}))\n```"
	readAmount  = "```python\nimport json\namount = float(inputs['invoice'].split(' EUR')[0])\n" +
		"print(json.dumps({'status': 'success', 'context_updates': {'amount': amount}}))\n```"
	readFile = "```python\ntext = open('invoice.txt').read()\ncontext['amount'] = float(text)\n```"
)

// play runs a flow of code nodes on this machine's Python.
func play(t *testing.T, flow string, c weirtest.Case) weirtest.Result {
	t.Helper()
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	if c.Executors == nil {
		c.Executors = []sandbox.Executor{x}
	}
	return weirtest.Flow(t, flow, c)
}

// steps returns the table of the steps that were recorded: number, name, attempt,
// status.
func steps(r weirtest.Result) []string {
	var out []string
	for _, s := range stepsOf(r) {
		out = append(out, fmt.Sprintf("%d %s %d %s", s.Number, s.Name, s.Attempt, s.Status))
	}
	return out
}

func stepsOf(r weirtest.Result) []engine.Step {
	var out []engine.Step
	for _, e := range r.Events {
		if s, ok := e.(*engine.StepRecorded); ok {
			out = append(out, s.Step)
		}
	}
	return out
}

// metadata returns what the node reported of its agents.
func metadata(t *testing.T, r weirtest.Result) map[string]any {
	t.Helper()
	for _, e := range r.Events {
		var m engine.Values
		switch e := e.(type) {
		case *engine.NodeCompleted:
			m = e.Metadata
		case *engine.NodeFailed:
			m = e.Metadata
		}
		if v, ok := m.Get("ai_metadata"); ok {
			return v.(map[string]any)
		}
	}
	t.Fatal("no node reported ai_metadata")
	return nil
}

func completes(t *testing.T, r weirtest.Result) {
	t.Helper()
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v; steps %q", r.Status, r.Error, steps(r))
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// sent returns all that one model call was given, as text.
func sent(r *llm.Request) string {
	text := r.System
	for _, m := range r.Messages {
		text += "\n" + m.Text
	}
	return text
}

func TestFailedThenPassedAttemptRecordsNineSteps(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{
		In:     map[string]any{"invoice": "1250 EUR, ACME"},
		Script: weirtest.Says(analysis, lookAtData, readFile, readAmount, goodVerdict),
	})
	completes(t, r)
	equal(t, "steps", steps(r), []string{
		"1 input_analysis 1 success", "2 data_analysis 1 success",
		"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 failed",
		"3 code_generation 2 success", "4 code_validation 2 success", "5 execution 2 success", "6 output_validation 2 success",
	})
	equal(t, "the state", r.State, map[string]any{"amount": 1250.0})
	all := stepsOf(r)
	if s := all[4]; !strings.Contains(s.Error, "FileNotFoundError") || s.Sandbox == "" || !strings.Contains(s.Code, "open(") {
		t.Errorf("the failed execution is %+v", s)
	}
	if s := all[5]; !strings.Contains(fmt.Sprint(s.Input), "FileNotFoundError") || s.Model != "script/demo" || s.Usage == nil || s.Usage.Calls != 1 {
		t.Errorf("the second generation is %+v", s)
	}
	if text := sent(r.Requests[3]); !strings.Contains(text, "FileNotFoundError") || !strings.Contains(text, "separator") {
		t.Errorf("the second generation did not receive the error and the insights: %s", text)
	}
	m := metadata(t, r)
	if m["attempts"] != int64(2) || m["steps"] != int64(9) || len(m["errors"].([]any)) != 1 || m["model"] != "script/demo" {
		t.Errorf("the metadata is %v", m)
	}
}
