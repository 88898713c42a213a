package history

import (
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
	if at := StartedAt(v); at != 5000 {
		t.Errorf("the fork began at %d", at)
	}
	v.Commits = v.Commits[:1]
	if at := StartedAt(v); at != 10 {
		t.Errorf("a run that is no fork began at %d", at)
	}
}

func TestOverriddenNodeHasItsNewStatus(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]engine.Status{"retry": engine.Pending, "skip": engine.Skipped, "complete": engine.Completed} {
		x := newTimeline()
		for n, e := range []engine.Event{
			&engine.NodeStarted{Path: "each#1/a"}, &engine.NodeFailed{Path: "each#1/a", Error: &engine.Error{Code: "x"}},
			&engine.NodeOverridden{Path: "each#1/a", Op: op},
		} {
			x.apply(e, int64(n+1), int64(n))
		}
		if got := x.node("each#1/a"); got.Status != want || got.Error != nil {
			t.Errorf("after %s it is %s, with the error %v", op, got.Status, got.Error)
		}
	}
}

func TestTimelineHasAnOpenQuestionOnce(t *testing.T) {
	t.Parallel()
	x := newTimeline()
	ask := func(ids ...string) *engine.NodeWaiting {
		e := &engine.NodeWaiting{Path: "a"}
		for _, id := range ids {
			e.Interrupts = append(e.Interrupts, engine.Interrupt{ID: "a:" + id, Kind: engine.AwaitApproval})
		}
		return e
	}
	x.apply(ask("one", "two"), 1, 0)
	x.apply(&engine.InterruptAnswered{ID: "a:one", Value: "approve", By: "ada"}, 2, 0)
	x.apply(ask("two"), 3, 0)
	if w := x.Nodes["a"].Waits; len(w) != 2 || !w[0].Answered || w[1].Answered {
		t.Errorf("got %+v", w)
	}
}
