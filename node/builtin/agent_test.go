package builtin_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// agentFlow is a conversation with an agent in its middle.
const agentFlow = `
weir: 1
name: talk
context: {model: script/demo, system: Be brief.}
nodes:
  pick: {type: tools}
  one: {type: llmRequest, in: {message: "hello"}}
  work: {type: agent, after: one, in: {message: "look it up", tools: "{{ pick.tools }}"}}
  two: {type: llmRequest, in: {context: "{{ work.context }}", message: "thanks"}}
outputs: {answer: "{{ work.text }}", trace: "{{ work.trace }}", stop: "{{ work.stop }}"}
`

func messageValue(req *llm.Request) []string {
	var out []string
	for _, m := range req.Messages {
		out = append(out, string(m.Role)+": "+m.Text)
	}
	return out
}

func TestOnlyTheFinalAnswerEntersTheContext(t *testing.T) {
	var l effectLog
	search := weirtest.Calls("search", map[string]any{"q": "weir"})
	search.Message.Text = "Let me see."
	r := weirtest.Flow(t, agentFlow, weirtest.Case{
		Tools:  []*tool.Tool{l.tool("search", "")},
		Script: []weirtest.Turn{weirtest.Says("hi")[0], search, weirtest.Says("A dam.")[0], weirtest.Says("bye")[0]},
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	before := []string{"user: hello", "assistant: hi", "user: look it up"}
	for n, want := range [][]string{
		1: before,
		2: append(before[:3:3], "assistant: Let me see.", "tool: search done"),
		3: append(before[:3:3], "assistant: A dam.", "user: thanks"),
	} {
		if got := messageValue(r.Requests[n]); want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("call %d was given %q, expected %q", n, got, want)
		}
	}
	if got := r.Requests[2].StablePrefix; got != 3 {
		t.Errorf("the second call of the agent says that %d messages are as before, expected 3", got)
	}
	trace := weirtest.Output[[]any](t, r, "trace")
	want := []any{
		map[string]any{"role": "assistant", "text": "Let me see.", "calls": []any{
			map[string]any{"id": trace[0].(map[string]any)["calls"].([]any)[0].(map[string]any)["id"], "name": "search", "arguments": `{"q":"weir"}`},
		}},
		map[string]any{
			"role": "tool", "text": "search done", "name": "search", "failed": false,
			"call": trace[0].(map[string]any)["calls"].([]any)[0].(map[string]any)["id"],
		},
		map[string]any{"role": "assistant", "text": "A dam."},
	}
	if !reflect.DeepEqual(trace, want) {
		t.Errorf("the trace is %v, expected %v", trace, want)
	}
	if got := metaOf(t, r, "work"); !reflect.DeepEqual(got, map[string]any{
		"steps": int64(2), "tokens": int64(0), "tools": map[string]any{"search": int64(1)},
	}) {
		t.Errorf("the metadata is %v", got)
	}
}

// metaOf returns what an agent left as metadata, also where it failed.
func metaOf(t *testing.T, r weirtest.Result, path string) any {
	t.Helper()
	var meta engine.Values
	for _, e := range r.Events {
		switch e := e.(type) {
		case *engine.NodeCompleted:
			if e.Path == path {
				meta = e.Metadata
			}
		case *engine.NodeFailed:
			if e.Path == path {
				meta = e.Metadata
			}
		}
	}
	v, ok := meta.Get("agent")
	if !ok {
		t.Fatalf("%s has no metadata: %v", path, meta)
	}
	return v
}

// An agent that looks something up, deletes it once a person says so, and
// answers: three processes, and nothing is done twice.
func TestAgentResumesAfterApprovalInANewProcess(t *testing.T) {
	var l effectLog
	w := newWorld(t, &scriptedModel{l: &l, steps: []convo.Message{
		callMessage(`look {"n":1}`),
		callMessage(`look {"n":2}`, `remove {"n":1}`, `look {"n":3}`),
		callMessage(`remove {"n":2}`),
		textMessage("Both are gone."),
	}}, l.tool("look", ""), l.tool("remove", tool.ApproveAlways))
	r := w.start(t, toolFlow("agent", "maxTime: 1h, maxTokens: 100000"))
	if got := prompts(r); !reflect.DeepEqual(got, []string{`remove with {"n":1}`}) {
		t.Fatalf("the questions are %q", got)
	}
	first := r.Interrupts[0]
	if first.Kind != engine.AwaitApproval || !strings.HasPrefix(first.ID, "ask:approve.3.") {
		t.Errorf("the question is %+v", first)
	}
	again := w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
		run, err := p.Resume(ctx, "run")
		if err != nil {
			t.Fatal(err)
		}
		return run
	})
	if len(again.Interrupts) != 1 || again.Interrupts[0].ID != first.ID {
		t.Errorf("resumed, the run asks %v", again.Interrupts)
	}
	want := []string{`look{"n":1}`, `look{"n":2}`, `look{"n":3}`, "model 0", "model 1"}
	if got := l.all(); !reflect.DeepEqual(got, want) {
		t.Fatalf("before the first answer was done %q, expected %q", got, want)
	}
	r = w.answer(t, r, "approve")
	if got := prompts(r); !reflect.DeepEqual(got, []string{`remove with {"n":2}`}) {
		t.Fatalf("the questions are %q", got)
	}
	r = w.answer(t, r, map[string]any{"approve": true})
	if text, _ := weir.Output[string](r, "text"); r.Status != engine.Completed || text != "Both are gone." {
		t.Fatalf("the run %s with %q: %v", r.Status, text, r.Error)
	}
	want = []string{
		`look{"n":1}`, `look{"n":2}`, `look{"n":3}`, "model 0", "model 1", "model 2", "model 3",
		`remove{"n":1}`, `remove{"n":2}`,
	}
	if got := l.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("in all was done %q, expected %q", got, want)
	}
}

func TestFailedAgentKeepsItsMessageAndRetryReusesEffects(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, `
weir: 1
name: twice
context: {model: script/demo}
nodes:
  pick: {type: tools}
  work:
    type: agent
    in: {message: "look it up", tools: "{{ pick.tools }}"}
    retry: {attempts: 2, backoff: 1ms, on: [model_filtered]}
  after: {type: llmRequest, after: work, in: {message: "and?"}}
outputs: {answer: "{{ work.text }}"}
`, weirtest.Case{
		Tools: []*tool.Tool{l.tool("search", "")},
		Script: []weirtest.Turn{
			weirtest.Calls("search", nil), weirtest.Fails(engine.CodeModelFiltered), weirtest.Says("found")[0], weirtest.Says("so")[0],
		},
	})
	if r.Status != engine.Completed || len(l.all()) != 1 {
		t.Fatalf("the run %s: %v; done was %q", r.Status, r.Error, l.all())
	}
	if got := messageValue(r.Requests[3]); !reflect.DeepEqual(got, []string{"user: look it up", "assistant: found", "user: and?"}) {
		t.Errorf("the next node was given %q", got)
	}
}

func TestAgentLimitsStopOrFailAsConfigured(t *testing.T) {
	used := weirtest.Calls("search", nil)
	used.Message.Text, used.Usage = "still looking", llm.Usage{Input: 90, Output: 10}
	script := []weirtest.Turn{used, used, used, used, weirtest.Says("found")[0]}
	for _, c := range []struct {
		name, with, stop string
		calls            int
	}{
		{"steps", "maxSteps: 2", llm.StopSteps, 2},
		{"tokens", "maxTokens: 250", "tokens", 3},
		{"tokens that are just enough", "maxTokens: 401", "end", 5},
		{"time", "maxTime: 1us", "time", 1},
		{"time that is enough", "maxTime: 1h", "end", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l effectLog
			in := weirtest.Case{Script: script, Tools: []*tool.Tool{l.tool("search", "")}}
			text := strings.Replace(toolFlow("agent", c.with+", atMax: stop"), "outputs: {", `outputs: {stop: "{{ ask.stop }}", `, 1)
			r := weirtest.Flow(t, text, in)
			if got := weirtest.Output[string](t, r, "stop"); got != c.stop || len(r.Requests) != c.calls {
				t.Errorf("it stopped for %q after %d calls, expected %q after %d", got, len(r.Requests), c.stop, c.calls)
			}
			if c.stop == "end" {
				return
			}
			if got := weirtest.Output[string](t, r, "text"); got != "still looking" || r.Messages[len(r.Messages)-1].Text != got {
				t.Errorf("the answer is %q, and the context ends with %+v", got, r.Messages[len(r.Messages)-1])
			}
			r = weirtest.Flow(t, toolFlow("agent", c.with), in)
			if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || r.Error.Node != "ask" {
				t.Fatalf("the run %s with %v", r.Status, r.Error)
			}
			if got := metaOf(t, r, "ask").(map[string]any)["steps"]; got != int64(c.calls) {
				t.Errorf("the metadata says %v steps, expected %d", got, c.calls)
			}
		})
	}
}

func TestAgentAnswerFitsItsSchemaUnlessCutOff(t *testing.T) {
	var l effectLog
	with := "atMax: stop, maxSteps: 1, schema: {type: object, required: [n], properties: {n: {type: integer}}}"
	text := strings.Replace(toolFlow("agent", with), "outputs: {", `outputs: {value: "{{ has(ask.value) ? ask.value : 'none' }}", `, 1)
	in := weirtest.Case{Script: []weirtest.Turn{weirtest.Calls("search", nil)}, Tools: []*tool.Tool{l.tool("search", "")}}
	r := weirtest.Flow(t, text, in)
	if got := r.Outputs["value"]; r.Status != engine.Completed || got != "none" {
		t.Errorf("the run %s with the value %v: %v", r.Status, got, r.Error)
	}
	in.Script = weirtest.Says(`{"n": 4}`)
	if got := weirtest.Output[map[string]any](t, weirtest.Flow(t, text, in), "value"); !reflect.DeepEqual(got, map[string]any{"n": int64(4)}) {
		t.Errorf("the value is %v", got)
	}
}

func TestSettingsMayOnlyTightenApproval(t *testing.T) {
	for _, c := range []struct {
		tool   tool.Approval
		with   string
		paused bool
	}{
		{"", "", false},
		{"", "approve: {search: always}", true},
		{"", "approve: {search: once}", true},
		{tool.ApproveAlways, "approve: {search: never}", true},
		{tool.ApproveAlways, "", true},
		{tool.ApproveNever, "approve: {search: never}", false},
	} {
		var l effectLog
		r := weirtest.Flow(t, toolFlow("agent", c.with), weirtest.Case{
			Script: []weirtest.Turn{weirtest.Calls("search", nil), weirtest.Says("found")[0]},
			Tools:  []*tool.Tool{l.tool("search", c.tool)},
		})
		if paused := r.Status == engine.Paused; paused != c.paused || r.Error != nil {
			t.Errorf("%q with %q: the run is %s, %v", c.tool, c.with, r.Status, r.Error)
		}
		if done := len(l.all()) > 0; done == c.paused {
			t.Errorf("%q with %q: done was %q", c.tool, c.with, l.all())
		}
	}
}

func TestApprovalOfAnUnofferedToolIsAnError(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, toolFlow("agent", "approve: {serach: always}"), weirtest.Case{Tools: []*tool.Tool{l.tool("search", "")}})
	if r.Error == nil || r.Error.Code != builtin.CodeToolUnknown || len(r.Requests) != 0 {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
}

func TestRepairDoesNotExceedTheStepLimit(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, toolFlow("agent", "maxSteps: 2, schema: {type: object}"), weirtest.Case{
		Tools: []*tool.Tool{l.tool("search", "")},
		Script: []weirtest.Turn{
			weirtest.Calls("search", nil), weirtest.Says("bad")[0], weirtest.Calls("search", nil), weirtest.Calls("search", nil), weirtest.Says("{}")[0],
		},
	})
	if r.Error == nil || r.Error.Code != engine.CodeTurnTooLong || len(r.Requests) != 3 {
		t.Errorf("the run %s after %d calls: %v", r.Status, len(r.Requests), r.Error)
	}
}

func TestExhaustedBudgetTakesTheLimitBranch(t *testing.T) {
	for typ, with := range map[string]string{
		"agent": "temperature: 0", "categorizer": "categories: [a]", "extract": "schema: {type: object}", "summarize": "temperature: 0",
	} {
		r := weirtest.Flow(t, `
weir: 1
name: poor
context: {model: script/demo}
budget: {maxCalls: 1, onLimit: branch}
nodes:
  one: {type: llmRequest, in: {message: "hello"}}
  work: {type: `+typ+`, in: {context: "{{ one.context }}"}, with: {`+with+`}}
  cheap: {type: template, in: {limit: "{{ work.limit.calls }}"}, with: {text: "after {{ inputs.limit }}"}}
outputs: {cheap: "{{ cheap.text }}", usage: "{{ work.usage }}"}
`, weirtest.Case{Script: weirtest.Says("hi")})
		if want := map[string]any{"cheap": "after 1"}; r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs, want) {
			t.Errorf("%s: the run %s with %v: %v", typ, r.Status, r.Outputs, r.Error)
		}
	}
}
