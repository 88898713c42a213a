package builtin_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

func TestQueueProblemsAreReportedTogetherAtLoad(t *testing.T) {
	text := `
weir: 1
name: wrong
nodes:
  work:
    type: agent
    with:
      mode: plans
      planner: {model: script/demo}
      queue: {capacity: 2, size: 3}
      pre:
        - {}
        - {say: a, tool: b}
        - {tool: "{{ state.tool }}", in: {a: 1}}
      todo:
        - {flow: hours.yaml}
        - {flow: hours.yaml, in: {day: 5, dya: x, short: "{{ state.short }}"}}
        - {flow: nowhere.yaml}
      post:
        - {tell: me}
        - ""
        - [one]
        - {tool: look, arguments: [1]}
        - "{{ inputs. }}"
        - {say: "{{ nobody.text }}"}
        - {flow: taking.yaml, in: {talk: x}}
      flows: [taking.yaml, hours.yaml, hours.yaml]
`
	files := flow.MemFiles{"hours.yaml": planFlow, "taking.yaml": `
weir: 1
name: taking
inputs: {talk: {type: context, required: true}}
nodes: {n: {type: start}}
`}
	_, err := flow.Source{Files: files}.Parse("flow.yaml", []byte(text), builtin.Catalogue())
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		`flow.yaml:8:13: the setting mode of work: `,
		`flow.yaml:9:16: planner is for an agent that plans`,
		`flow.yaml:10:28: work (agent) has no setting queue.size`,
		`flow.yaml:12:9: pre has 3 entries, and the queue takes 2`,
		`flow.yaml:12:11: an entry must be one of say (an instruction), tool (a tool call) and flow (a flow that is run); got none`,
		`flow.yaml:13:11: an entry must be one of say (an instruction), tool (a tool call) and flow (a flow that is run); this has 2 of them`,
		`flow.yaml:14:18: tool is a name, and no template`,
		`flow.yaml:14:42: in goes with flow`,
		`flow.yaml:16:18: the flow hours needs the input day (text)`,
		`hint: add in: {day: ...} to the entry`,
		`flow.yaml:17:40: the input day of the flow hours: expected text, got a number`,
		`flow.yaml:17:48: the flow hours has no input "dya"`,
		`hint: did you mean day?`,
		`flow.yaml:18:18: the flow file "nowhere.yaml" does not exist`,
		`flow.yaml:20:12: work (agent) has no setting post.0.tell`,
		`flow.yaml:21:11: the setting post.1 of work`,
		`flow.yaml:22:11: the setting post.2 of work`,
		`flow.yaml:23:35: the setting post.3.arguments of work`,
		`flow.yaml:24:`,
		`flow.yaml:25:`,
		`flow.yaml:26:18: the flow taking has the input talk, which cannot be given`,
		`flow.yaml:27:15: the flow taking has the input talk, which cannot be given`,
		`flow.yaml:27:14: the setting flows of work`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it is not said that %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestInvalidEntryFailsBeforeAnyEffect(t *testing.T) {
	for _, c := range []struct{ with, code, message string }{
		{"pre: [Begin.]\npost: [{tool: nothing}, {tool: look}, {tool: none}]", engine.CodeToolUnknown, "there is no tool nothing, none"},
		{"pre: [Begin.]\npost: [\"{{ state.absent }}\"]", engine.CodeExpression, "post.0: "},
		{"pre: [Begin.]\npost: [{say: \"{{ inputs.message.text == 'x' ? 'y' : '' }}\"}]", engine.CodeExpression, "post.0: "},
		{"pre: [Begin.]\npost: [{tool: look, arguments: \"{{ run.flow }}\"}]", engine.CodeExpression, `post.0.arguments: the template gave "queues", expected an object`},
		{"pre: [Begin.]\npost: [{flow: hours.yaml, in: {day: \"{{ run.inputs }}\"}}]", engine.CodeInput, "post.0: flow hours: input \"day\": expected text, got an object"},
		{"pre: [Begin.]\napprove: {jump: always}", engine.CodeToolUnknown, "approve: the node is not offered the tool \"jump\""},
	} {
		var l effectLog
		r := weirtest.Flow(t, queues(c.with), weirtest.Case{
			Files: map[string]string{"hours.yaml": planFlow}, Tools: []*tool.Tool{l.tool("look", "")}, Script: weirtest.Says("a", "b"),
		})
		if r.Error == nil || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.message) || len(r.Requests) > 0 {
			t.Errorf("%s: the run %s: %v", c.with, r.Status, r.Error)
		}
	}
}

func TestEntriesInGoMayHoldFlowValues(t *testing.T) {
	w := open(t, weir.Options{Providers: models(&scriptedModel{})})
	child, err := w.Parse("hours.yaml", []byte(planFlow))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Define(weir.Definition{Name: "go", Nodes: map[string]weir.NodeSpec{"work": {Type: "agent", With: map[string]any{
		"pre":   []any{map[string]any{"flow": child, "in": map[string]any{"day": "monday"}}},
		"flows": []any{child},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Node("work"); len(n.Runs) != 1 || n.Runs[0] != child || f.UsedFlow("hours") != child {
		t.Errorf("the node may run %v", n.Runs)
	}
}

func TestFlowMayQueueItself(t *testing.T) {
	r := weirtest.Flow(t, `
weir: 1
name: down
context: {model: script/demo}
inputs: {n: {type: number, default: 1}}
nodes:
  more: {type: decision, with: {expr: run.inputs.n > 0}}
  work: {type: agent, after: more.true, in: {message: "Go."}, with: {pre: [{flow: self, in: {n: "{{ run.inputs.n - 1 }}"}}]}}
  end: {type: template, after: more.false, with: {text: the end}}
outputs: {text: "{{ has(work.text) ? work.text : end.text }}"}
`, weirtest.Case{Script: weirtest.Says("done")})
	if r.Status != engine.Completed || !strings.Contains(r.Requests[0].Messages[0].Text, "the end") {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
}
