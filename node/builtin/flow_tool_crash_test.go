package builtin_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
)

// askingTool is a flow that is offered as a tool. It asks a person, then a model that calls a tool which needs approval.
const askingTool = `
weir: 1
name: helper
inputs: {who: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "{{ run.inputs.who }}?"}}
  inner: {type: llmRequest, in: {message: "{{ ask.text }}", tools: [kept]}}
outputs: {word: "{{ inner.text }}"}
`

// askingToolsCase returns a flow with a node of a type whose model calls two flows, a plain tool and one that needs
// approval in one answer.
func askingToolsCase(t require, nodeType string) *crashCase {
	t.Helper()
	l := new(effectLog)
	parsing, err := weir.Open(weir.Options{Tools: []*tool.Tool{recordingTool(l, "kept", tool.ApproveAlways)}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := parsing.Parse("helper.yaml", []byte(askingTool))
	if err != nil {
		t.Fatal(err)
	}
	if err := parsing.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &crashCase{
		l: l, flows: []weir.FlowTool{{Flow: f}},
		tools: []*tool.Tool{recordingTool(l, "look", ""), recordingTool(l, "kept", tool.ApproveAlways)},
		model: &keyedModel{map[string]convo.Message{
			"work/model#1":  callMessage(`helper {"who":"a"}`, `look {"at":"one"}`, `kept {"at":"one"}`, `helper {"who":"b"}`),
			"work/model#2":  textMessage("all is done"),
			"inner/model#1": callMessage(`kept {"at":"inside"}`),
			"inner/model#2": textMessage("heard"),
		}, l},
		text: `
weir: 1
name: outer
context: {model: script/demo}
nodes:
  pick: {type: tools}
  work: {type: ` + nodeType + `, in: {message: Go., tools: "{{ pick.tools }}"}}
outputs: {text: "{{ work.text }}"}
`,
	}
}

// TestFlowToolsThatAskSurviveACrashAtAnyCommit kills the process at each commit of the caller and of the flows that its
// model calls, and continues in another. Nothing that was recorded as done is done again.
func TestFlowToolsThatAskSurviveACrashAtAnyCommit(t *testing.T) {
	t.Parallel()
	for _, nodeType := range []string{"llmRequest", "agent"} {
		t.Run(nodeType, func(t *testing.T) {
			t.Parallel()
			crashAtEachCommit(t, nodeType)
		})
	}
}

func crashAtEachCommit(t *testing.T, nodeType string) {
	t.Helper()
	whole, keys, _ := askingToolsCase(t, nodeType).runWithCrash(t, unlimitedCommits)
	if text, _ := weir.Output[string](whole, "text"); whole.Status != engine.Completed || text != "all is done" {
		t.Fatalf("the run %s with %q: %v", whole.Status, text, whole.Error)
	}
	if len(keys) != 12 { // 2 + 4 of the caller, and 3 of each flow
		t.Errorf("there were %d effects: %q", len(keys), keys)
	}
	died := 0
	for {
		r, got, dead := askingToolsCase(t, nodeType).runWithCrash(t, died+1)
		if !dead {
			break
		}
		died++
		if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs, whole.Outputs) {
			t.Errorf("after %d commits the run %s with %v: %v", died, r.Status, r.Outputs, r.Error)
		}
		if !slices.Equal(got, keys) {
			t.Errorf("after %d commits the effects are %q, expected %q", died, got, keys)
		}
	}
	if died < 20 {
		t.Errorf("the run has %d commits in which a process may die, expected more", died)
	}
}
