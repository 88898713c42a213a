package main

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

func TestTimelineOfForkKeepsOriginalTimes(t *testing.T) {
	t.Parallel()
	start, end, fork, next := &engine.NodeStarted{Path: "a"}, &engine.NodeCompleted{Path: "a"}, &engine.RunForked{AtTime: 20}, &engine.NodeStarted{Path: "b"}
	v := &runner.RunView{Commits: []engine.Commit{
		{At: 10, Events: []engine.Event{start}},
		{At: 5000, Events: []engine.Event{end, fork, next}},
	}}
	var got []int64
	for _, c := range v.Commits {
		for i := range c.Events {
			got = append(got, c.When(i))
		}
	}
	if want := [4]int64{10, 20, 5000, 5000}; [4]int64(got) != want {
		t.Errorf("%v", got)
	}
	if at := startedAt(v); at != 5000 {
		t.Errorf("the fork began at %d", at)
	}
	v.Commits = v.Commits[:1]
	if at := startedAt(v); at != 10 {
		t.Errorf("a run that is no fork began at %d", at)
	}
}

func TestOverriddenNodeHasItsNewStatus(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]engine.Status{"retry": engine.Pending, "skip": engine.Skipped, "complete": engine.Completed} {
		c := &timeline{nodes: make(map[string]*nodeRecord), approvals: make(map[string]interruptRecord)}
		for n, e := range []engine.Event{
			&engine.NodeStarted{Path: "each#1/a"}, &engine.NodeFailed{Path: "each#1/a", Error: &engine.Error{Code: "x"}},
			&engine.NodeOverridden{Path: "each#1/a", Op: op},
		} {
			c.apply(e, int64(n+1), int64(n))
		}
		if got := c.node("each#1/a"); got.Status != want || got.Error != nil {
			t.Errorf("after %s it is %s, with the error %v", op, got.Status, got.Error)
		}
	}
}

func TestCodeOutputIsPrintedSeparately(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	var out strings.Builder
	p.out = &out
	p.printEffect(&engine.EffectCompleted{Key: "a/code#1", Result: map[string]any{"stdout": "one\ntwo\n", "stderr": "oops\n", "set": map[string]any{"n": int64(1)}}})
	if want := "  {\"set\":{\"n\":1}}\n  stdout:\n    one\n    two\n  stderr:\n    oops\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
	out.Reset()
	p.printEffect(&engine.EffectCompleted{Key: "a/code#1", Result: map[string]any{"stdout": "one\n"}, Error: &engine.Error{Code: "code_failed", Message: "it raised"}})
	if want := "it raised (code_failed)\n  stdout:\n    one\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
}
