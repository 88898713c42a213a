package runner_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// TestOverrideInAChildThatThenAsksReopensItsParents covers each operation, at each depth, on each kind of node that runs
// the child, with the answer in the same process and in the next one. The failed node stands beside a question, which
// was cancelled with it and is asked again.
func TestOverrideInAChildThatThenAsksReopensItsParents(t *testing.T) {
	for _, op := range []string{"retry", "skip", "complete"} {
		for _, wrap := range []string{"direct", "forEach", "loop", "nested", "retried"} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/restart=%v", op, wrap, restart), func(t *testing.T) {
					testOverrideThenAnswer(t, op, wrap, restart)
				})
			}
		}
	}
}

func testOverrideThenAnswer(t *testing.T, op, wrap string, restart bool) {
	t.Helper()
	var tries, asked atomic.Int64
	failures := int64(1)
	if wrap == "retried" {
		failures = 2 // the second child is continued
	}
	before := newFlakyType(&asked, 0).(*funcType)
	before.spec.Name = "counted"
	tr := newTree(t, newFlakyType(&tries, failures), before)
	tr.add("l0", `
nodes:
  before: {type: counted}
  try: {type: flaky, after: before}
  ask: {type: userInput, after: before, with: {prompt: "Your name?"}}
outputs: {out: "{{ ask.text }}"}
`)
	above := "down"
	root := wrapFlow("l0")
	switch wrap {
	case "retried":
		root = strings.Replace(root, "with:", "retry: {attempts: 2, backoff: 1ms}, with:", 1)
	case "forEach":
		above = "each#1/down"
		root = `
nodes:
  each: {type: forEach, in: {items: [1]}, with: {body: {nodes: {down: {type: sub, with: {flow: l0}}}, outputs: {out: "{{ down.out }}"}}}}
outputs: {out: "{{ each.results[0].out }}"}
`
	case "loop":
		above = "again#1/down"
		root = `
nodes:
  again: {type: loop, with: {max: 1, body: {nodes: {down: {type: sub, with: {flow: l0}}}, outputs: {out: "{{ down.out }}"}}}}
outputs: {out: "{{ again.out }}"}
`
	case "nested":
		above = "down>down>down"
		tr.add("l1", wrapFlow("l0"))
		tr.add("l2", wrapFlow("l1"))
		root = wrapFlow("l2")
	}
	p := tr.add("root", root)
	equal(t, "status", tr.wait(tr.start(p)).Status, engine.Failed)
	runs := len(tr.runs())
	if restart {
		tr.open()
	}
	x, err := tr.local.DoAt(t.Context(), p, "r", above+">try", func(path string) runner.Command {
		return runner.OverrideNode(op, path, engine.Values{{Name: "out", Value: "given"}}, "me")
	})
	if err != nil {
		t.Fatal(err)
	}
	r := tr.wait(x)
	equal(t, "status after the override", r.Status, engine.Paused)
	equal(t, "questions", ids(r.Interrupts), above+">ask:ask#1")
	if restart {
		tr.open()
	}
	r = tr.answer(p, "r", r.Interrupts[0].ID, "Ada")
	equal(t, "status after the answer", r.Status, engine.Completed)
	out, _ := r.Outputs.Get("out")
	equal[any](t, "output", out, "Ada")
	equal(t, "runs", len(tr.runs()), runs)
	for i, run := range tr.runs() {
		if wrap == "retried" && i > 0 && run.Head.Status == engine.Failed {
			continue // the child of the first try
		}
		equal(t, run.ID, run.Head.Status, engine.Completed)
	}
}
