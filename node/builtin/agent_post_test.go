package builtin_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// failingTool returns the tool bad, which fails so many times.
func failingTool(l *effectLog, times int) *tool.Tool {
	return &tool.Tool{Name: "bad", Call: func(_ context.Context, c tool.Call) (string, error) {
		l.add(c.Key)
		if times--; times >= 0 {
			return "", errors.New("it is broken")
		}
		return "mended", nil
	}}
}

// codeOf returns the code that a run failed with, "" if it did not.
func codeOf(r weirtest.Result) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// queuesOf returns the metadata of an agent's queues.
func queuesOf(t *testing.T, r weirtest.Result) any {
	t.Helper()
	return metaOf(t, r, "work").(map[string]any)["queues"]
}

func TestPostQueueRunsAfterSuccessAndFailure(t *testing.T) {
	still := weirtest.Calls("look", nil)
	for _, c := range []struct {
		name, with string
		script     []weirtest.Turn
		code       string // of the agent's failure, "" for none
	}{
		{"it went well", "", []weirtest.Turn{weirtest.Says("done")[0], weirtest.Says("noted")[0]}, ""},
		{"the model failed", "", []weirtest.Turn{weirtest.Fails(engine.CodeModelFiltered), weirtest.Says("noted")[0]}, engine.CodeModelFiltered},
		{"at the limit", "maxSteps: 2", []weirtest.Turn{still, still, weirtest.Says("noted")[0]}, engine.CodeTurnTooLong},
		{"stopped at the limit", "maxSteps: 2\natMax: stop", []weirtest.Turn{still, still, weirtest.Says("noted")[0]}, ""},
		{"what comes before failed", "pre: [{tool: bad}]", []weirtest.Turn{weirtest.Says("noted")[0]}, engine.CodeToolFailed},
		{"a model failed before", "pre: [Begin.]", []weirtest.Turn{weirtest.Fails(engine.CodeModelFiltered), weirtest.Says("noted")[0]}, engine.CodeModelFiltered},
		{"there is no plan", "mode: plan", []weirtest.Turn{weirtest.Says("no")[0], weirtest.Says("no")[0], weirtest.Says("noted")[0]}, engine.CodeModelAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l effectLog
			r := weirtest.Flow(t, queues(c.with+"\npost: [{tool: tidy}, {say: Note it.}, {tool: tidy, arguments: {n: 2}}]"), weirtest.Case{
				Tools: []*tool.Tool{l.tool("look", ""), l.tool("tidy", ""), failingTool(new(effectLog), 9)}, Script: c.script,
			})
			if got := codeOf(r); got != c.code {
				t.Fatalf("the run %s: %v, expected %q", r.Status, r.Error, c.code)
			}
			if tidied := strings.Count(strings.Join(l.all(), " "), "tidy"); tidied != 2 || len(r.Requests) != len(c.script) {
				t.Errorf("it was tidied %d times, and the model asked %d times of %d", tidied, len(r.Requests), len(c.script))
			}
			if got := queuesOf(t, r).(map[string]any)["post"]; !reflect.DeepEqual(got, map[string]any{"run": int64(3)}) {
				t.Errorf("the metadata says %v", got)
			}
			last := messageValue(r.Requests[len(r.Requests)-1])
			ended := strings.Contains(strings.Join(last, "\n"), "user: The work above ended with a failure: ")
			if last[len(last)-1] != "user: Note it." || ended != (c.code != "") {
				t.Errorf("the last call was sent %q", last)
			}
		})
	}
}

func TestEveryPostEntryRunsAndTheFirstFailureWins(t *testing.T) {
	post := "post: [{tool: bad}, {say: Note it.}, {tool: tidy}]"
	for _, c := range []struct {
		answer      weirtest.Turn
		code, place string
	}{
		{weirtest.Says("done")[0], engine.CodeToolFailed, "post.0 (tool bad): tool bad: it is broken"},
		{weirtest.Fails(engine.CodeModelFiltered), engine.CodeModelFiltered, "the script says so"},
	} {
		var l effectLog
		r := weirtest.Flow(t, queues(post), weirtest.Case{
			Tools:  []*tool.Tool{failingTool(new(effectLog), 9), l.tool("tidy", "")},
			Script: []weirtest.Turn{c.answer, weirtest.Fails(engine.CodeModelAuth)},
		})
		if r.Error == nil || r.Error.Code != c.code || r.Error.Message != c.place {
			t.Errorf("the run %s: %v, expected %s", r.Status, r.Error, c.place)
		}
		meta := metaOf(t, r, "work").(map[string]any)
		failures := []any{"post.0 (tool bad): tool bad: it is broken (tool_failed)", "post.1 (say): the script says so (model_auth)"}
		if !reflect.DeepEqual(meta["postFailures"], failures) || len(l.all()) != 1 {
			t.Errorf("the metadata says %v, and done was %q", meta, l.all())
		}
		if len(r.Messages) != 1 {
			t.Errorf("the context has %v", r.Messages)
		}
	}
}

// flow with an agent that is tried so often.
func retriedFlow(attempts, with string) string {
	codes := "tool_failed, model_overloaded"
	if strings.Contains(with, "flow: flaky.yaml") {
		codes += ", out_of_luck"
	}
	return strings.Replace(queues(with), "    with:\n", "    retry: {attempts: "+attempts+", backoff: 1ms, on: ["+codes+"]}\n    with:\n", 1)
}

func overloaded() weirtest.Turn {
	return weirtest.Turn{Error: &llm.Error{Code: engine.CodeModelOverloaded, Message: "later", Retry: true}}
}

func TestRetryContinuesTheWorkAndRunsPostAgain(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, retriedFlow("2", `
pre: [{tool: look, arguments: {at: pre}}]
todo: [{tool: look, arguments: {at: todo}}, Go on.]
post: [{tool: tidy}, Note it.]
`), weirtest.Case{
		Tools: []*tool.Tool{l.tool("look", ""), l.tool("tidy", "")},
		Script: []weirtest.Turn{
			weirtest.Calls("look", map[string]int{"at": 1}), weirtest.Says("done")[0], overloaded(), weirtest.Says("noted that it failed")[0],
			weirtest.Calls("look", map[string]int{"at": 2}), weirtest.Says("gone on")[0], weirtest.Says("all")[0], weirtest.Says("noted")[0],
		},
	})
	if r.Status != engine.Completed || r.Outputs["text"] != "all" {
		t.Fatalf("the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	want := []string{`look{"at":"pre"}`, `look{"at":"todo"}`, `look{"at":1}`, `look{"at":2}`, "tidy{}", "tidy{}"}
	if got := l.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("done was %q", got)
	}
	keys := []string{
		"queue.tool#1", "model#1", "tool#1", "model#2", "queue.tool#2", "model#3", "post.1@1.tool#1", "post.2@1.model#1",
		"model#3", "tool#2", "model#4", "model#5", "post.1.tool#1", "post.2.model#1",
	}
	if got := keysOf(r); !reflect.DeepEqual(got, keys) {
		t.Errorf("the effects are %q", got)
	}
}

func TestRetryRepeatsPostFromTheFailedEntry(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, retriedFlow("2", "post: [{tool: tidy, arguments: {n: 1}}, {tool: bad}, Note it., {tool: tidy, arguments: {n: 3}}]"), weirtest.Case{
		Tools:  []*tool.Tool{failingTool(new(effectLog), 1), l.tool("tidy", "")},
		Script: weirtest.Says("done", "noted that it is broken", "noted that it is mended"),
	})
	if r.Status != engine.Completed || r.Outputs["text"] != "done" {
		t.Fatalf("the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	keys := []string{
		"model#1", "post.1.tool#1", "post.2.tool#1", "post.3@1.model#1", "post.4@1.tool#1",
		"post.2.tool#1", "post.3.model#1", "post.4.tool#1",
	}
	if got := keysOf(r); !reflect.DeepEqual(got, keys) {
		t.Errorf("the effects are %q", got)
	}
}

func TestRetryCallsAFailedPreToolAgain(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, retriedFlow("3", "pre: [{tool: look}, {tool: bad}]"), weirtest.Case{
		Tools:  []*tool.Tool{failingTool(&l, 2), l.tool("look", "")},
		Script: weirtest.Says("done"),
	})
	want := []string{"look{}", "run/work/queue.tool#2", "run/work/queue.tool#2", "run/work/queue.tool#2"}
	if got := l.all(); r.Status != engine.Completed || !reflect.DeepEqual(got, want) {
		t.Errorf("the run %s: %v; done was %q", r.Status, r.Error, got)
	}
}

const failingEntries = "weir: 1\nname: unlucky\nnodes: {bad: {type: fail, with: {code: out_of_luck, message: No luck.}}}\n"

func TestTodoFailureIsShownToTheModelAndKeptOnRetry(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, retriedFlow("2", "todo: [{tool: bad}, {flow: unlucky.yaml}, Go on.]"), weirtest.Case{
		Files:  map[string]string{"unlucky.yaml": failingEntries},
		Tools:  []*tool.Tool{failingTool(&l, 1)},
		Script: []weirtest.Turn{weirtest.Says("begun")[0], overloaded(), weirtest.Says("gone on")[0], weirtest.Says("all")[0]},
	})
	if r.Status != engine.Completed || len(l.all()) != 1 {
		t.Fatalf("the run %s: %v; done was %q", r.Status, r.Error, l.all())
	}
	want := []string{
		"user: Go.", "assistant: begun",
		"user: The tool bad was called with {}. It failed:\n<result>\nit is broken\n</result>",
		"user: The flow unlucky.yaml was run with {}. It failed:\n<result>\nNo luck. (out_of_luck)\n</result>",
		"user: Go on.",
	}
	for _, n := range []int{1, 2} {
		if got := messageValue(r.Requests[n]); !reflect.DeepEqual(got, want) {
			t.Errorf("call %d was sent %q", n+1, got)
		}
	}
	queues := map[string]any{"todo": map[string]any{"run": int64(3), "failed": int64(2)}}
	if got := queuesOf(t, r); !reflect.DeepEqual(got, queues) {
		t.Errorf("the queues are %v", got)
	}
}

// A flow that fails the first time alone: what the model was sent about it then is what
// another attempt continues from.
func TestRetryDoesNotRepeatAFailedTodoFlow(t *testing.T) {
	ran := 0
	flaky := weir.Func("flaky", func(weir.Ctx, struct{}) (struct{}, error) {
		if ran++; ran == 1 {
			return struct{}{}, &engine.Error{Code: "out_of_luck", Message: "No luck."}
		}
		return struct{}{}, nil
	})
	for queue, times := range map[string]int{"todo": 1, "pre": 2} {
		ran = 0
		script := []weirtest.Turn{weirtest.Says("begun")[0], overloaded(), weirtest.Says("gone on")[0], weirtest.Says("all")[0]}
		if queue == "pre" {
			script = weirtest.Says("done", "more", "all")
		}
		r := weirtest.Flow(t, retriedFlow("2", queue+": [{flow: flaky.yaml}]\nqueue: {tools: true}"), weirtest.Case{
			Files: map[string]string{"flaky.yaml": "weir: 1\nname: flaky\nnodes: {try: {type: flaky}}\n"},
			Types: []weir.Type{flaky}, Script: script,
		})
		if r.Status != engine.Completed || ran != times {
			t.Errorf("%s: the run %s: %v; the flow ran %d times", queue, r.Status, r.Error, ran)
		}
	}
}

func TestFailedPreOrPostFlowFailsTheAgentWithItsPlace(t *testing.T) {
	for queue, script := range map[string][]string{"pre": nil, "post": {"done"}} {
		r := weirtest.Flow(t, queues(queue+": [{flow: unlucky.yaml}]"), weirtest.Case{
			Files: map[string]string{"unlucky.yaml": failingEntries}, Script: weirtest.Says(script...),
		})
		if r.Error == nil || r.Error.Error() != "work>bad: "+queue+".0 (flow unlucky.yaml): No luck. (out_of_luck)" || !strings.Contains(r.Error.Hint, "weir show run.") {
			t.Errorf("%s: the run %s: %v, hint %q", queue, r.Status, r.Error, r.Error.Hint)
		}
	}
}

func TestPostQueueIsSkippedAfterCancel(t *testing.T) {
	var l effectLog
	begun := make(chan struct{})
	slow := &tool.Tool{Name: "slow", Call: func(ctx context.Context, _ tool.Call) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	}}
	w := open(t, weir.Options{Providers: models(&scriptedModel{steps: []convo.Message{callMessage("slow {}"), textMessage("done")}}), Tools: []*tool.Tool{slow, l.tool("tidy", "")}})
	f, err := w.Parse("flow.yaml", []byte(queues("post: [{tool: tidy}]")))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Cancelled || len(l.all()) != 0 {
		t.Errorf("the run %s, %v; done was %q", r.Status, err, l.all())
	}
}

func TestExhaustedBudgetEndsTheWorkButRunsPostTools(t *testing.T) {
	for limit, status := range map[string]engine.Status{"fail": engine.Failed, "branch": engine.Completed} {
		var l effectLog
		text := strings.Replace(queues("pre: [Begin.]\npost: [Note it., {tool: tidy}]"), "nodes:\n", "budget: {maxCalls: 1, onLimit: "+limit+"}\nnodes:\n", 1)
		text = strings.Replace(text, "outputs: {", `outputs: {limit: "{{ work.limit }}", `, 1)
		r := weirtest.Flow(t, text, weirtest.Case{Tools: []*tool.Tool{l.tool("tidy", "")}, Script: weirtest.Says("begun")})
		if r.Status != status || len(l.all()) != 1 || len(r.Requests) != 1 {
			t.Errorf("%s: the run %s: %v; done was %q", limit, r.Status, r.Error, l.all())
		}
		if limit == "fail" && codeOf(r) != engine.CodeBudget || limit == "branch" && r.Outputs["limit"] == nil {
			t.Errorf("%s: the run %s with %v: %v", limit, r.Status, r.Outputs, r.Error)
		}
	}
}

func TestPausingBudgetAsksWithinAQueue(t *testing.T) {
	var l effectLog
	text := strings.Replace(queues("pre: [{tool: tidy}, Begin.]\ntodo: [{flow: one.yaml}]"), "nodes:\n", "budget: {maxCalls: 2, onLimit: pause}\nnodes:\n", 1)
	r := weirtest.Flow(t, text, weirtest.Case{
		Files: map[string]string{"one.yaml": "weir: 1\nname: one\nnodes: {say: {type: llmRequest, in: {message: Hi.}}}\n"},
		Tools: []*tool.Tool{l.tool("tidy", "")}, Script: weirtest.Says("begun", "answered", "hello", "all"),
		Answers: map[string]any{"work": map[string]any{"maxCalls": 5}, "work:flow#1>say": map[string]any{"maxCalls": 5}},
	})
	if r.Status != engine.Completed || r.Outputs["text"] != "all" || len(l.all()) != 1 || r.Usage.Calls != 4 {
		t.Errorf("the run %s with %v: %v; waits for %+v; done was %q, %d calls", r.Status, r.Outputs, r.Error, r.Waiting, l.all(), r.Usage.Calls)
	}
}

func TestPostQueueIsSkippedAfterTimeout(t *testing.T) {
	var l effectLog
	slow := &tool.Tool{Name: "slow", Call: func(ctx context.Context, _ tool.Call) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}
	text := strings.Replace(queues("post: [{tool: tidy}]"), "    with:\n", "    timeout: {total: 20s, idle: 30ms}\n    with:\n", 1)
	r := weirtest.Flow(t, text, weirtest.Case{
		Tools: []*tool.Tool{slow, l.tool("tidy", "")}, Script: []weirtest.Turn{weirtest.Calls("slow", nil)},
	})
	if codeOf(r) != engine.CodeTimeout || len(l.all()) != 0 {
		t.Errorf("the run %s: %v; done was %q", r.Status, r.Error, l.all())
	}
}
