package main

import (
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

func TestWhatAForkSharesOfACommitIsAsOldAsItWasAndTheForkAsOldAsItself(t *testing.T) {
	t.Parallel()
	start, end, fork, next := &engine.NodeStarted{Path: "a"}, &engine.NodeCompleted{Path: "a"}, &engine.RunForked{Then: 20}, &engine.NodeStarted{Path: "b"}
	v := &runner.View{Commits: []engine.Commit{
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
	if at := begunAt(v); at != 5000 {
		t.Errorf("the fork began at %d", at)
	}
	v.Commits = v.Commits[:1]
	if at := begunAt(v); at != 10 {
		t.Errorf("a run that is no fork began at %d", at)
	}
}
