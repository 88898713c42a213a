package builtin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// queues returns a flow with an agent of these settings, which may call all tools.
func queues(with string) string {
	return `
weir: 1
name: queues
context: {model: script/demo, system: Be brief.}
nodes:
  pick: {type: tools}
  work:
    type: agent
    in: {message: "Go.", tools: "{{ pick.tools }}"}
    with:
` + indented(with, "      ") + `
outputs: {text: "{{ work.text }}", trace: "{{ work.trace }}", stop: "{{ work.stop }}", usage: "{{ work.usage }}"}
`
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// linesOf returns the messages of a trace as "role: text".
func linesOf(trace []any) []string {
	var out []string
	for _, m := range trace {
		o := m.(map[string]any)
		out = append(out, o["role"].(string)+": "+o["text"].(string))
	}
	return out
}

// keysOf returns the keys of the effects that were made, in the order of the journal.
func keysOf(r weirtest.Result) []string {
	var out []string
	for _, e := range r.Effects {
		out = append(out, strings.TrimPrefix(e.Key, "work/"))
	}
	return out
}

func TestPreAndPostQueuesRunInOrder(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, queues(`
pre:
  - Look around.
  - {tool: look, arguments: {at: "{{ run.flow }}"}}
todo: [Do more.]
post:
  - {tool: tidy}
  - say: "Write it up, {{ run.flow }}."
`), weirtest.Case{
		Tools:  []*tool.Tool{l.tool("look", ""), l.tool("tidy", "")},
		Script: weirtest.Says("I looked.", "Done.", "More is done.", "All done.", "Written."),
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	want := []string{
		"user: Look around.", "assistant: I looked.",
		"user: The tool look was called with {\"at\":\"queues\"}. Its result:\n<result>\nlook done\n</result>",
		"user: Go.", "assistant: Done.", "user: Do more.", "assistant: More is done.",
		"user: That was the last step. Now give the final answer to what was asked at first.", "assistant: All done.",
		"user: The tool tidy was called with {}. Its result:\n<result>\ntidy done\n</result>",
		"user: Write it up, queues.", "assistant: Written.",
	}
	if got := linesOf(weirtest.Output[[]any](t, r, "trace")); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s", strings.Join(got, "\n"))
	}
	if r.Outputs["text"] != "All done." || len(r.Messages) != 2 || r.Messages[1].Text != "All done." {
		t.Errorf("the answer is %v, and the context has %v", r.Outputs["text"], r.Messages)
	}
	keys := []string{"model#1", "queue.tool#1", "model#2", "model#3", "model#4", "post.1.tool#1", "post.2.model#1"}
	if got := keysOf(r); !reflect.DeepEqual(got, keys) {
		t.Errorf("the effects are %q", got)
	}
}

func TestModelEntriesRunInCallOrderUpToTheCapacity(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, queues(`
queue: {capacity: 3, tools: true}
`), weirtest.Case{
		Tools: []*tool.Tool{l.tool("look", "")},
		Script: []weirtest.Turn{
			{Message: callMessage(`addTodo {"say":"one"}`, `look {}`, `addTodo {"tool":"look","arguments":{"at":2}}`, `listTodo {}`,
				`addTodo {"say":"three"}`, `addTodo {"say":"four"}`, `addTodo {"tool":"jump"}`, `addTodo {"say":"a","tool":"look"}`, `addTodo {"what":1}`)},
			weirtest.Says("begun")[0], weirtest.Says("one done")[0], weirtest.Says("three done")[0], weirtest.Says("all done")[0],
		},
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	want := []string{
		"user: Go.", "assistant: ",
		"tool: It is number 1 of those that wait; 2 more may be added.",
		"tool: look done",
		"tool: It is number 2 of those that wait; 1 more may be added.",
		`tool: {"capacity":3,"waiting":["one","call the tool look with {\"at\":2}"]}`,
		"tool: It is number 3 of those that wait; 0 more may be added.",
		"tool: the queue is full: its capacity is 3 entries, 3 are waiting, and 1 more do not fit. Nothing was added: do it now, or leave it",
		`tool: there is no tool "jump"; there are: look`,
		"tool: an entry must be one of say (an instruction), tool (a tool call) and flow (a flow that is run)",
		`tool: the step cannot be read: json: unknown field "what"`,
		"assistant: begun",
		"user: one", "assistant: one done",
		"user: The tool look was called with {\"at\":2}. Its result:\n<result>\nlook done\n</result>",
		"user: three", "assistant: three done",
		"user: That was the last step. Now give the final answer to what was asked at first.", "assistant: all done",
	}
	if got := linesOf(weirtest.Output[[]any](t, r, "trace")); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s", strings.Join(got, "\n"))
	}
	for i, failed := range []bool{2: false, 3: false, 7: true, 8: true, 9: true, 10: true} {
		if m := weirtest.Output[[]any](t, r, "trace")[i].(map[string]any); m["role"] == "tool" && m["failed"] != failed {
			t.Errorf("%v is not said to have failed as it did", m)
		}
	}
	queues := metaOf(t, r, "work").(map[string]any)["queues"]
	if !reflect.DeepEqual(queues, map[string]any{"todo": map[string]any{"run": int64(3), "added": int64(3), "refused": int64(1)}}) {
		t.Errorf("the metadata says of the queues %v", queues)
	}
}

func TestQueueToolsAreOfferedOnlyWithAQueue(t *testing.T) {
	for with, offered := range map[string]bool{
		"maxSteps: 3": false, "pre: [Begin.]": false, "post: [End.]": false, "post: [End.]\nqueue: {capacity: 5}": false,
		"todo: [Do it.]": true, "mode: plan": true, "queue: {tools: true}": true, "mode: plan\nqueue: {tools: false}": false,
	} {
		r := weirtest.Flow(t, queues(with), weirtest.Case{Model: &keyedModel{map[string]convo.Message{
			"work/plan#1": textMessage(`{"steps": []}`), "work/model#1": textMessage("a"), "work/model#2": textMessage("b"), "work/model#3": textMessage("c"), "work/post.1.model#1": textMessage("d"),
		}, new(effectLog)}})
		if r.Status != engine.Completed {
			t.Fatalf("%s: the run %s: %v", with, r.Status, r.Error)
		}
		var names []string
		for _, tool := range r.Requests[len(r.Requests)-1].Tools {
			names = append(names, tool.Name)
		}
		if got := reflect.DeepEqual(names, []string{"addTodo", "listTodo"}); got != offered || !offered && names != nil {
			t.Errorf("%s: the model is offered %v", with, names)
		}
	}
}

func TestQueueToolNamesAreReserved(t *testing.T) {
	var l effectLog
	in := weirtest.Case{Tools: []*tool.Tool{l.tool("addTodo", "")}, Script: weirtest.Says("done")}
	r := weirtest.Flow(t, queues("queue: {tools: true}"), in)
	if r.Error == nil || r.Error.Code != engine.CodeInput || len(r.Requests) != 0 {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
	if r := weirtest.Flow(t, queues("pre: [{tool: addTodo}]"), in); r.Status != engine.Completed || len(l.all()) != 1 {
		t.Errorf("without a queue the run %s: %v, and did %q", r.Status, r.Error, l.all())
	}
}

func TestStoppingToolLeavesTheRestOfTheQueue(t *testing.T) {
	var l effectLog
	finish := l.tool("finish", "")
	finish.EndsTurn = true
	bye := weirtest.Calls("finish", nil)
	bye.Message.Text = "bye"
	r := weirtest.Flow(t, queues("pre: [Begin.]\ntodo: [One., Two., Three.]\npost: [End.]"), weirtest.Case{
		Tools:  []*tool.Tool{finish},
		Script: []weirtest.Turn{bye, weirtest.Says("so")[0], weirtest.Says("one")[0], bye, weirtest.Says("ended")[0]},
	})
	if r.Status != engine.Completed || r.Outputs["text"] != "bye" || r.Outputs["stop"] != "calls" {
		t.Fatalf("the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	got := metaOf(t, r, "work").(map[string]any)["queues"]
	if want := map[string]any{
		"pre": map[string]any{"run": int64(1)}, "todo": map[string]any{"run": int64(2), "left": int64(1)}, "post": map[string]any{"run": int64(1)},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("the queues are %v", got)
	}
}

func TestAgentWithoutMessageAnswersTheHistory(t *testing.T) {
	r := weirtest.Flow(t, `
weir: 1
name: history
context: {model: script/demo}
nodes:
  ask: {type: manualInput, with: {text: "What is a weir?", history: true}}
  work: {type: agent, after: ask, with: {pre: [Think.]}}
outputs: {text: "{{ work.text }}"}
`, weirtest.Case{Script: weirtest.Says("Hm.", "A dam.")})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	want := []string{
		"user: What is a weir?", "user: Think.", "assistant: Hm.",
		"user: These were preparations. Now answer what was said before them.",
	}
	if got := messageValue(r.Requests[1]); !reflect.DeepEqual(got, want) {
		t.Errorf("the model was asked %q", got)
	}
	if got := messageLines(r.Messages); !reflect.DeepEqual(got, []string{"user: What is a weir?", "assistant: A dam."}) {
		t.Errorf("the context has %q", got)
	}
}

func TestModelEntriesAreNeverEvaluated(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, queues("mode: plan\nsystem: \"{{ run.flow }}\""), weirtest.Case{
		Tools: []*tool.Tool{l.tool("look", "")},
		Script: []weirtest.Turn{
			weirtest.Says(`{"steps": [{"say": "{{ run.flow }}"}, {"tool": "look", "arguments": "{\"at\": \"{{ run.flow }}\"}"}]}`)[0],
			weirtest.Calls("addTodo", map[string]string{"say": "{{ secrets.key }}"}), weirtest.Says("a")[0], weirtest.Says("b")[0], weirtest.Says("c")[0],
		},
	})
	trace := strings.Join(linesOf(weirtest.Output[[]any](t, r, "trace")), "\n")
	for _, want := range []string{"user: Step 1: {{ run.flow }}\n", `with {"at":"{{ run.flow }}"}`, "user: {{ secrets.key }}\n"} {
		if !strings.Contains(trace, want) {
			t.Errorf("%q is not in\n%s", want, trace)
		}
	}
}

func TestAgentTimeStartsAtTheFirstCallAndCoversTheQueue(t *testing.T) {
	with := "todo: [One., Two.]\npost: [End., Really.]\nmaxTime: 1us"
	r := weirtest.Flow(t, queues(with+"\natMax: stop"), weirtest.Case{Script: weirtest.Says("begun", "ended")})
	if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || !strings.HasPrefix(r.Error.Message, "post.1 (say): ") || len(r.Requests) != 2 {
		t.Errorf("the run %s after %d calls: %v", r.Status, len(r.Requests), r.Error)
	}
	want := map[string]any{"todo": map[string]any{"run": int64(0), "left": int64(2)}, "post": map[string]any{"run": int64(2), "failed": int64(1)}}
	if got := queuesOf(t, r); !reflect.DeepEqual(got, want) {
		t.Errorf("the queues are %v", got)
	}
}
