package builtin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

const planFlow = `
weir: 1
name: hours
description: Tells when we are open.
inputs: {day: {type: text, required: true, description: The weekday.}, short: {type: bool}}
nodes: {find: {type: template, with: {text: "{{ run.inputs.day }}: from nine"}}}
outputs: {text: "{{ find.text }}"}
`

func TestPlanStepsRunInOrderAndMayBeExtended(t *testing.T) {
	var l effectLog
	plan := `{"steps": [{"say": "Find a walk."}, {"tool": "look", "arguments": "{\"at\": \"map\"}"}, {"flow": "hours", "in": "{\"day\": \"friday\"}"}]}`
	r := weirtest.Flow(t, queues(`
mode: plan
system: You are a guide.
planner: {model: script/thinker, system: You plan tours., temperature: 1, maxOutput: 500, reasoning: high}
flows: [./hours.yaml]
schema: {type: object, required: [day], properties: {day: {type: string}}}
`), weirtest.Case{
		Files: map[string]string{"hours.yaml": planFlow},
		Tools: []*tool.Tool{l.tool("look", "")},
		Script: []weirtest.Turn{
			weirtest.Says(plan)[0],
			{Message: callMessage(`addTodo {"flow":"hours","in":{"day":"monday"}}`, `addTodo {"flow":"hours","in":{"dya":"monday"}}`, `addTodo {"flow":"./hours.yaml","in":"{\"day\":\"sunday\"}"}`)},
			weirtest.Says("Along the weir.")[0], weirtest.Says(`{"day": "A walk."}`)[0],
		},
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	result := func(day string) string { return "\n<result>\n" + day + ": from nine\n</result>" }
	want := []string{
		"user: Go.",
		"assistant: The plan:\n1. Find a walk.\n2. call the tool look with {\"at\":\"map\"}\n3. run the flow ./hours.yaml with {\"day\":\"friday\"}",
		"user: Step 1: Find a walk.", "assistant: ",
		"tool: It is number 3 of those that wait; 97 more may be added.",
		"tool: flow hours: input \"day\" is required (text)\nthe flow has no input \"dya\"",
		"tool: It is number 4 of those that wait; 96 more may be added.",
		"assistant: Along the weir.",
		"user: The tool look was called with {\"at\":\"map\"}. Its result:\n<result>\nlook done\n</result>",
		"user: The flow ./hours.yaml was run with {\"day\":\"friday\"}. Its result:" + result("friday"),
		"user: The flow ./hours.yaml was run with {\"day\":\"monday\"}. Its result:" + result("monday"),
		"user: The flow ./hours.yaml was run with {\"day\":\"sunday\"}. Its result:" + result("sunday"),
		"user: That was the last step. Now give the final answer to what was asked at first.",
		`assistant: {"day": "A walk."}`,
	}
	if got := linesOf(weirtest.Output[[]any](t, r, "trace")); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s", strings.Join(got, "\n"))
	}
	keys := []string{"plan#1", "model#1", "tool#1", "tool#2", "tool#3", "model#2", "queue.tool#1", "model#3"}
	if got := keysOf(r); !reflect.DeepEqual(got[:2], keys[:2]) || !reflect.DeepEqual(got[5:], keys[5:]) || len(got) != len(keys) {
		t.Errorf("the effects are %q", got)
	}
	got := queuesOf(t, r)
	if want := map[string]any{"planned": int64(3), "todo": map[string]any{"run": int64(5), "added": int64(2)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the queues are %v", got)
	}
	if usage := weirtest.Output[map[string]any](t, r, "usage"); usage["calls"] != int64(4) {
		t.Errorf("the usage is %v", usage)
	}
	checkPlanner(t, r.Requests)
}

func checkPlanner(t *testing.T, asked []*llm.Request) {
	t.Helper()
	planner, worker := asked[0], asked[1]
	if planner.Model != "thinker" || *planner.Temperature != 1 || planner.MaxOutput != 500 || planner.Reasoning != "high" || planner.Tools != nil {
		t.Errorf("the planner was asked %+v", planner)
	}
	for _, part := range []string{
		"You plan tours.\n\n", "- look: Does look.", "- hours: Tells when we are open. Its inputs: day (text, required) The weekday., short (bool)",
		"at most 100 steps",
	} {
		if !strings.Contains(planner.System, part) {
			t.Errorf("the planner does not receive %q in\n%s", part, planner.System)
		}
	}
	if !reflect.DeepEqual(messageValue(planner), []string{"user: Go."}) || planner.Schema == nil {
		t.Errorf("the planner was sent %q under %v", messageValue(planner), planner.Schema)
	}
	if worker.Model != "demo" || worker.System != "You are a guide." || worker.Schema != nil || worker.Temperature != nil {
		t.Errorf("the steps were asked for by %+v", worker)
	}
	if last := asked[3]; last.Schema == nil || len(last.Tools) != 3 {
		t.Errorf("the answer was asked for by %+v", last)
	}
}

func TestInvalidPlanIsRepairedOnceThenFails(t *testing.T) {
	var l effectLog
	one := `{"steps": [{"say": "one"}]}`
	for _, c := range []struct {
		with, bad, why string
		code           string
	}{
		{"", "Let us begin.", "it is not JSON", engine.CodeModelAnswer},
		{"", `{"steps": [{"tool": "jump", "arguments": "{}"}]}`, "steps", engine.CodeModelAnswer},
		{"", `{"steps": [{"say": "one", "tool": "look"}]}`, "steps", engine.CodeModelAnswer},
		{"queue: {capacity: 2}", `{"steps": [{"say": "1"}, {"say": "2"}, {"say": "3"}]}`, "got 3, want 2", engine.CodeModelAnswer},
		{"queue: {capacity: 2}\ntodo: [Look.]", `{"steps": [{"say": "1"}, {"say": "2"}]}`, "got 2, want 1", engine.CodeModelAnswer},
	} {
		in := weirtest.Case{Tools: []*tool.Tool{l.tool("look", "")}, Script: weirtest.Says(c.bad, c.bad)}
		r := weirtest.Flow(t, queues("mode: plan\n"+c.with), in)
		if r.Error == nil || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.why) {
			t.Errorf("%s: the run %s: %v", c.bad, r.Status, r.Error)
		}
		in.Script = weirtest.Says(c.bad, one, "a", "b", "c")
		if r := weirtest.Flow(t, queues("mode: plan\n"+c.with), in); r.Status != engine.Completed || !reflect.DeepEqual(keysOf(r)[:3], []string{"plan#1", "plan#2", "model#1"}) {
			t.Errorf("%s, repaired: the run %s: %v; %q", c.bad, r.Status, r.Error, keysOf(r))
		}
	}
	lost := `{"steps": [{"tool": "look", "arguments": "at the map"}]}`
	in := weirtest.Case{Tools: []*tool.Tool{l.tool("look", "")}, Script: weirtest.Says(lost, lost)}
	if r := weirtest.Flow(t, queues("mode: plan"), in); r.Error == nil || r.Error.Code != engine.CodeModelAnswer || !strings.Contains(r.Error.Message, "not JSON") {
		t.Errorf("arguments that are none: the run %s: %v", r.Status, r.Error)
	}
}

func TestEmptyPlanIsAnsweredImmediately(t *testing.T) {
	r := weirtest.Flow(t, queues("mode: plan"), weirtest.Case{Script: weirtest.Says(`{"steps": []}`, "Done.")})
	if r.Status != engine.Completed || r.Outputs["text"] != "Done." || len(r.Requests) != 2 {
		t.Errorf("the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
}

func TestPlannerInheritsTheAgentsInstructions(t *testing.T) {
	for with, want := range map[string]string{"mode: plan": "Be brief.\n\nDo not answer yet", "mode: plan\nsystem: You are {{ run.flow }}.": "You are queues.\n\nDo not answer yet"} {
		r := weirtest.Flow(t, queues(with), weirtest.Case{Script: weirtest.Says(`{"steps": []}`, "Done.")})
		if !strings.HasPrefix(r.Requests[0].System, want) {
			t.Errorf("the planner receives %q", r.Requests[0].System)
		}
	}
}

func TestAgentLimitsCoverAllQueues(t *testing.T) {
	used := func(text string) weirtest.Turn {
		turn := weirtest.Says(text)[0]
		turn.Usage = llm.Usage{Input: 90, Output: 10}
		return turn
	}
	script := []weirtest.Turn{used("begun"), used(`{"steps": [{"say": "1"}, {"say": "2"}, {"say": "3"}]}`), used("one"), used("two"), used("three"), used("all"), used("ended"), used("really")}
	for _, c := range []struct {
		name, with, stop, text string
		calls                  int
		left                   int64
	}{
		{"none", "", "end", "all", 8, 0},
		{"steps that are enough", "maxSteps: 6", "end", "all", 8, 0},
		{"no step for the answer", "maxSteps: 5", "steps", "three", 7, 0},
		{"steps", "maxSteps: 3", "steps", "one", 5, 2},
		{"no step for the first", "maxSteps: 2", "steps", "", 4, 3},
		{"tokens", "maxTokens: 301", "tokens", "two", 6, 1},
		{"tokens that are used up", "maxTokens: 300", "tokens", "one", 5, 2},
		{"time", "maxTime: 1h", "end", "all", 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := "mode: plan\npre: [Begin.]\npost: [End., Really.]\n" + c.with
			said := append([]weirtest.Turn{}, script[:c.calls-2]...)
			said = append(said, script[6:]...)
			r := weirtest.Flow(t, queues(with+"\natMax: stop"), weirtest.Case{Script: said})
			if r.Status != engine.Completed || r.Outputs["stop"] != c.stop || r.Outputs["text"] != c.text || len(r.Requests) != c.calls {
				t.Fatalf("it %s after %d calls with %v: %v", r.Status, len(r.Requests), r.Outputs, r.Error)
			}
			todo, _ := queuesOf(t, r).(map[string]any)["todo"].(map[string]any)
			if left, _ := todo["left"].(int64); left != c.left {
				t.Errorf("the queue is %v", todo)
			}
			if c.stop == "end" {
				return
			}
			r = weirtest.Flow(t, queues(with), weirtest.Case{Script: said})
			if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || !strings.Contains(r.Error.Message, "at the limit of "+c.stop) || len(r.Requests) != c.calls {
				t.Errorf("it %s after %d calls: %v", r.Status, len(r.Requests), r.Error)
			}
		})
	}
}

func TestPreQueueCountsTowardsTheLimits(t *testing.T) {
	r := weirtest.Flow(t, queues("pre: [One., Two., Three.]\nmaxSteps: 2\natMax: stop"), weirtest.Case{Script: weirtest.Says("one", "two")})
	if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || !strings.HasPrefix(r.Error.Message, "pre.2 (say): ") {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
}

func TestPlanningAgentHasMoreSteps(t *testing.T) {
	for mode, most := range map[string]int{"mode: plan": 64, "todo: [Go on.]": 16} {
		said := []weirtest.Turn{weirtest.Says(`{"steps": [{"say": "1"}]}`)[0]}
		for range 80 {
			said = append(said, weirtest.Calls("look", nil))
		}
		if most == 16 {
			said = said[1:]
		}
		r := weirtest.Flow(t, queues(mode), weirtest.Case{Script: said})
		if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || len(r.Requests) != most {
			t.Errorf("%s: it %s after %d calls: %v", mode, r.Status, len(r.Requests), r.Error)
		}
	}
}
