package builtin_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

func TestEntryToolsNeedApproval(t *testing.T) {
	for _, c := range []struct {
		with    string
		approve tool.Approval
		asks    string // the question's id, "" for none
	}{
		{"pre: [{tool: kept, arguments: {n: 1}}]", tool.ApproveAlways, "work:queue.approve.1."},
		{"pre: [{tool: kept, arguments: {n: 1}}]", tool.ApproveOnce, "work:queue.approve.1."},
		{"pre: [{tool: kept, arguments: {n: 1}}]\napprove: {kept: always}", "", "work:queue.approve.1."},
		{"pre: [{tool: kept, arguments: {n: 1}}]", "", ""},
		{"todo: [{tool: kept, arguments: {n: 1}}]", tool.ApproveAlways, "work:queue.approve.1."},
		{"post: [Note it., {tool: kept, arguments: {n: 1}}]", tool.ApproveAlways, "work:post.2.approve.1."},
	} {
		var l effectLog
		r := weirtest.Flow(t, queues(c.with), weirtest.Case{Script: weirtest.Says("a", "b", "c"), Tools: []*tool.Tool{l.tool("kept", c.approve)}})
		if c.asks == "" {
			if r.Status != engine.Completed || len(l.all()) != 1 {
				t.Errorf("%s: the run %s: %v", c.with, r.Status, r.Error)
			}
			continue
		}
		if r.Status != engine.Paused || len(l.all()) != 0 || !strings.HasPrefix(r.Waiting[0].ID, c.asks) ||
			!strings.HasPrefix(r.Waiting[0].Prompt, `The node work asks to call kept with {"n":1}.`) {
			t.Errorf("%s: the run %s: %v, and waits for %+v", c.with, r.Status, r.Error, r.Waiting)
		}
	}
}

func TestOneApprovalCoversEntriesAndModelCalls(t *testing.T) {
	var l effectLog
	in := weirtest.Case{
		Tools:   []*tool.Tool{l.tool("kept", tool.ApproveOnce)},
		Script:  []weirtest.Turn{weirtest.Calls("kept", nil), weirtest.Says("done")[0], weirtest.Says("done")[0], weirtest.Says("done")[0]},
		Answers: map[string]any{"work": "approve"},
	}
	r := weirtest.Flow(t, queues("pre: [{tool: kept, arguments: {n: 1}}]\ntodo: [{tool: kept, arguments: {n: 2}}]\npost: [{tool: kept, arguments: {n: 3}}]"), in)
	asked := 0
	for _, e := range r.Events {
		if _, is := e.(*engine.InterruptAnswered); is {
			asked++
		}
	}
	if r.Status != engine.Completed || asked != 1 || len(l.all()) != 4 {
		t.Errorf("the run %s: %v; %d answers were given, and done was %q", r.Status, r.Error, asked, l.all())
	}
}

func TestRejectedEntryFailsPreAndIsReportedInTodo(t *testing.T) {
	for queue, code := range map[string]string{"pre": engine.CodeToolFailed, "todo": "", "post": engine.CodeToolFailed} {
		var l effectLog
		r := weirtest.Flow(t, queues(queue+": [{tool: kept}]"), weirtest.Case{
			Script: weirtest.Says("a", "b", "c"), Tools: []*tool.Tool{l.tool("kept", tool.ApproveAlways)},
			Answers: map[string]any{"work": map[string]any{"approve": false, "reason": "not today"}},
		})
		if code != "" {
			if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, queue+".0 (tool kept): A person refused this call of kept: not today.") {
				t.Errorf("%s: the run %s: %v", queue, r.Status, r.Error)
			}
		} else if r.Status != engine.Completed || !strings.Contains(strings.Join(linesOf(r.Outputs["trace"].([]any)), "\n"), "It failed:\n<result>\nA person refused this call of kept: not today.") {
			t.Errorf("%s: the run %s: %v", queue, r.Status, r.Error)
		}
		if len(l.all()) != 0 {
			t.Errorf("%s: done was %q", queue, l.all())
		}
	}
}

func TestTraceNamesTheApproverOfAnEntry(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, queues("pre: [{tool: kept}]"), weirtest.Case{
		Script: weirtest.Says("a"), Tools: []*tool.Tool{l.tool("kept", tool.ApproveAlways)}, Answers: map[string]any{"work": "approve"},
	})
	first := weirtest.Output[[]any](t, r, "trace")[0].(map[string]any)
	note := first["metadata"].(map[string]any)
	if note["queue"] != "pre" || note["tool"] != "kept" || note["approval"].(map[string]any)["allowed"] != true {
		t.Errorf("the trace begins with %v", first)
	}
}

// What a model was sent is read from the record, for planners and for what comes
// after the work too.
func TestPromptDigestsMatchForAgentsWithQueues(t *testing.T) {
	s := allFeaturesCase()
	w := s.process(t, memory.New(), unlimitedCommits)
	defer func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	f, err := w.ParseIn(s.files, "flow.yaml", []byte(s.text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := runToEnd(t.Context(), w, run); err != nil || r.Status != engine.Completed {
		t.Fatalf("the run %s: %v, %v", r.Status, r.Error, err)
	}
	sent, err := w.InspectPrompts(t.Context(), "run", "work")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, s := range sent {
		keys = append(keys, s.Key)
		if !s.Proven {
			t.Errorf("%s is not what the journal has the digest of", s.Key)
		}
	}
	want := []string{
		"work/model#1", "work/model#2", "work/plan#1", "work/model#3", "work/model#4", "work/model#5", "work/model#6", "work/post.3.model#1",
	}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("told were %q", keys)
	}
}

func TestEntryFlowQuestionSurfacesUnderTheAgentsPath(t *testing.T) {
	var l effectLog
	r := weirtest.Flow(t, queues("pre: [{flow: asking.yaml, in: {who: a}}, {flow: asking.yaml, in: {who: b}}]\npost: [{flow: asking.yaml, in: {who: c}}]"), weirtest.Case{
		Files:   allFeaturesFiles,
		Model:   &keyedModel{map[string]convo.Message{"say/model#1": textMessage("heard"), "work/model#1": textMessage("done")}, &l},
		Answers: map[string]any{"work:flow#1>ask": "1", "work:flow#2>ask": "2", "work:post.1.flow#1>ask": "3"},
	})
	if r.Status != engine.Completed {
		t.Errorf("the run %s: %v, waits for %+v", r.Status, r.Error, r.Waiting)
	}
}
