package builtin_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
)

// twoNodeFlow has two nodes that may call every tool, the second after the first or
// besides it, and the model of each.
func twoNodeFlow(after, second string) string {
	return `
weir: 1
name: twice
nodes:
  first: {type: ` + second + `, in: {message: "Go.", tools: [kept]}, with: {model: one/demo}}
  second: {type: ` + second + `, ` + after + `in: {message: "Go.", tools: [kept], context: "{{ other.context }}"}, with: {model: two/demo}}
  other: {type: newContext}
outputs: {a: "{{ first.text }}", b: "{{ second.text }}"}
`
}

// twoModels are two models by the names one and two.
func twoModels(one, second weir.Provider) map[string]weir.Provider {
	return map[string]weir.Provider{"one": one, "two": second}
}

func recordingModel(n string) *scriptedModel {
	return &scriptedModel{steps: []convo.Message{callMessage(`kept {"n":` + n + `}`), textMessage("done " + n)}}
}

func TestRunApprovalCoversEveryNode(t *testing.T) {
	for _, typ := range []string{"llmRequest", "agent"} {
		t.Run(typ, func(t *testing.T) {
			var l effectLog
			w := newWorld(t, nil, l.tool("kept", tool.ApproveOnce))
			w.models = twoModels(recordingModel("1"), recordingModel("2"))
			r := w.start(t, twoNodeFlow("after: first, ", typ))
			if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":1}`}) {
				t.Fatalf("the questions are %q", got)
			}
			r = w.answer(t, r, "approve")
			if r.Status != engine.Completed {
				t.Fatalf("the run %s: %v, and asks %q", r.Status, r.Error, prompts(r))
			}
			if got := l.all(); !reflect.DeepEqual(got, []string{`kept{"n":1}`, `kept{"n":2}`}) {
				t.Errorf("done was %q", got)
			}
		})
	}
}

func TestOneRunApprovalAnswersParallelQuestions(t *testing.T) {
	var l effectLog
	w := newWorld(t, nil, l.tool("kept", tool.ApproveOnce))
	w.models = twoModels(recordingModel("1"), recordingModel("2"))
	r := w.start(t, twoNodeFlow("", "llmRequest"))
	if got := prompts(r); len(got) != 2 {
		t.Fatalf("the questions are %q", got)
	}
	r = w.answer(t, r, "approve")
	if r.Status != engine.Completed || len(l.all()) != 2 {
		t.Fatalf("the run %s: %v, asks %q, done was %q", r.Status, r.Error, prompts(r), l.all())
	}
}

func TestRejectionAppliesOnlyToItsOwnCall(t *testing.T) {
	var l effectLog
	w := newWorld(t, nil, l.tool("kept", tool.ApproveOnce), l.tool("other", tool.ApproveAlways))
	w.models = twoModels(&scriptedModel{steps: []convo.Message{
		callMessage(`kept {"n":1}`), callMessage(`other {}`), callMessage(`kept {"n":3}`), textMessage("done"),
	}}, recordingModel("2"))
	f := twoNodeFlow("", "agent")
	r := w.start(t, strings.ReplaceAll(f, "[kept]", "[kept, other]"))
	// The first node is refused, then asks for something else, and is entered
	// again after the second was given leave. Which asks first is chance.
	slices.SortFunc(r.Interrupts, func(a, b engine.Interrupt) int { return strings.Compare(a.ID, b.ID) })
	r = w.answer(t, r, "reject")
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":2}`, `other with {}`}) {
		t.Fatalf("the questions are %q", got)
	}
	r = w.answer(t, r, map[string]any{"approve": true, "reason": "go on"})
	r = w.answer(t, r, "approve")
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v, and asks %q", r.Status, r.Error, prompts(r))
	}
	if got := l.all(); !reflect.DeepEqual(got, []string{`kept{"n":2}`, `kept{"n":3}`, "other{}"}) {
		t.Errorf("done was %q", got)
	}
}

func TestRunApprovalIsBoundToTheToolDefinition(t *testing.T) {
	var l effectLog
	w := newWorld(t, nil, l.tool("kept", tool.ApproveAlways))
	w.models = twoModels(recordingModel("1"), recordingModel("2"))
	r := w.answer(t, w.start(t, twoNodeFlow("after: first, ", "llmRequest")), "approve")
	if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":2}`}) {
		t.Errorf("after leave for one call the questions are %q", got)
	}
}

func TestToolResultNamesTheApprover(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{steps: []convo.Message{
		callMessage(`kept {"n":1}`), callMessage(`kept {"n":2}`), textMessage("done"),
	}}, l.tool("kept", tool.ApproveAlways))
	r := w.start(t, strings.ReplaceAll(toolFlow("agent", ""), `outputs: {text: "{{ ask.text }}"}`, `outputs: {trace: "{{ ask.trace }}"}`))
	r = w.answer(t, r, "approve")
	r = w.answer(t, r, map[string]any{"approve": false, "reason": "enough"})
	v, _ := r.Outputs.Get("trace")
	trace, _ := v.([]any)
	var notes []any
	for _, m := range trace {
		o, _ := m.(map[string]any)
		if o["role"] == "tool" {
			notes = append(notes, o["metadata"])
		}
	}
	want := []any{
		map[string]any{"approval": map[string]any{"allowed": true, "by": "ann"}},
		map[string]any{"approval": map[string]any{"allowed": false, "by": "ann", "reason": "enough"}},
	}
	if !reflect.DeepEqual(notes, want) {
		t.Errorf("the results say %v", notes)
	}
}

func TestEveryToolNodeMayTightenApproval(t *testing.T) {
	for _, typ := range []string{"llmRequest", "agent"} {
		var l effectLog
		w := newWorld(t, recordingModel("1"), l.tool("kept", ""))
		r := w.start(t, toolFlow(typ, "approve: {kept: once}"))
		if got := prompts(r); !reflect.DeepEqual(got, []string{`kept with {"n":1}`}) {
			t.Fatalf("%s: the questions are %q", typ, got)
		}
		if r = w.answer(t, r, "approve"); r.Status != engine.Completed || len(l.all()) != 1 {
			t.Errorf("%s: the run %s: %v; done was %q", typ, r.Status, r.Error, l.all())
		}
		w = newWorld(t, recordingModel("1"), l.tool("kept", ""))
		if e := mustFail(t, w.start(t, toolFlow(typ, "approve: {kepd: once}"))); e.Code != engine.CodeToolUnknown {
			t.Errorf("%s: leave for a tool that is not offered: %v", typ, e)
		}
	}
}
