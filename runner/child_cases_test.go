package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

func TestOneOf1000ConcurrentAnswersToAChildWins(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", wrapFlow("l1"))
	r := tr.wait(tr.start(p))
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			_, err := tr.local.Do(t.Context(), p, "r", runner.Answer(r.Interrupts[0].ID, fmt.Sprint(i), "me"))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, runner.ErrNoInterrupt):
				t.Errorf("answer %d: %v", i, err)
			}
		})
	}
	all.Wait()
	equal(t, "answers that won", won.Load(), 1)
	eventually(t, func() bool { return tr.runs()[0].Head.Status == engine.Completed })
}

func TestFailedChildFailsItsNodeWithItsCode(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", `
nodes:
  bad: {type: fail, with: {message: no good, code: out_of_luck}}
`)
	p := tr.add("l1", wrapFlow("l0"))
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Failed)
	equal(t, "code", r.Error.Code, "out_of_luck")
	equal(t, "node", r.Error.Node, "down")
	child := tr.runs()[1]
	equal(t, "where", r.Error.Place(), "down>bad")
	equal(t, "in which run", r.Error.Run, child.ID)
	equal(t, "message", r.Error.Message, "no good")
}

func TestDeepFailureIsReportedOnceWithItsTreePath(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", `
nodes:
  bad: {type: fail, with: {message: no good, code: out_of_luck}}
`)
	tr.add("l1", wrapFlow("l0"))
	tr.add("l2", wrapFlow("l1"))
	p := tr.add("l3", wrapFlow("l2"))
	r := tr.wait(tr.start(p))
	equal(t, "failure", r.Error.Error(), "down>down>down>bad: no good (out_of_luck)")
	for _, run := range tr.runs() {
		if run.Flow == "l0" {
			equal(t, "in which run", r.Error.Run, run.ID)
		}
	}
}

func TestNodeRetryStartsAnotherChild(t *testing.T) {
	var tries atomic.Int64
	tr := newTree(t, newFlakyType(&tries, 2))
	tr.add("l0", "nodes:\n  try: {type: flaky}\noutputs: {out: \"{{ try.out }}\"}\n")
	p := tr.add("l1", `
nodes:
  down: {type: sub, with: {flow: l0}, retry: {attempts: 3, backoff: 1ms}}
outputs: {out: "{{ down.out }}"}
`)
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Completed)
	equal(t, "runs", len(tr.runs()), 4)
}

// newFlakyType returns a node type that fails so many times.
func newFlakyType(tries *atomic.Int64, failures int64) node.Type {
	return &funcType{flow.TypeSpec{
		Name: "flaky", Version: 1, Ports: flow.Ports{Out: []flow.Port{{Name: "out", Type: flow.TypeAny}}},
	}, func(ctx *node.Ctx) error {
		if n := tries.Add(1); n <= failures {
			return fmt.Errorf("try %d", n)
		}
		ctx.Output("out", "done")
		return nil
	}}
}

// funcType is a node type that is one function.
type funcType struct {
	spec flow.TypeSpec
	run  node.NodeFunc
}

// Spec describes the type.
func (f *funcType) Spec() *flow.TypeSpec { return &f.spec }

// Prepare makes the node.
func (f *funcType) Prepare(map[string]any) (node.Node, error) { return f.run, nil }

func TestOverridingANodeInAFailedChildContinuesItsParents(t *testing.T) {
	var tries atomic.Int64
	tr := newTree(t, newFlakyType(&tries, 1))
	tr.add("l0", "nodes:\n  try: {type: flaky}\noutputs: {out: \"{{ try.out }}\"}\n")
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", wrapFlow("l1"))
	equal(t, "status", tr.wait(tr.start(p)).Status, engine.Failed)
	grandchild := tr.runs()[2]
	if _, err := tr.local.Do(t.Context(), tr.programs[grandchild.Fingerprint], grandchild.ID, runner.OverrideNode("retry", "try", nil, "me")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return tr.runs()[0].Head.Status == engine.Completed })
	for _, run := range tr.runs() {
		equal(t, run.ID, run.Head.Status, engine.Completed)
	}
	equal(t, "runs", len(tr.runs()), 3)
}

func TestCancelledChildFailsItsNodeAndOnErrorHandlesIt(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	p := tr.add("l1", `
nodes:
  down: {type: sub, with: {flow: l0}, onError: {value: never mind}}
outputs: {out: "{{ down.out }}"}
`)
	tr.wait(tr.start(p))
	grandchild := tr.runs()[1]
	if _, err := tr.local.Do(t.Context(), tr.programs[grandchild.Fingerprint], grandchild.ID, runner.Cancel("me", "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return tr.runs()[0].Head.Status == engine.Completed })
	equal(t, "child", tr.runs()[1].Head.Status, engine.Cancelled)
}

func TestCancellingAPausedTreeEndsLeavesFirst(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", wrapFlow("l1"))
	tr.wait(tr.start(p))
	x, err := tr.local.Do(t.Context(), p, "r", runner.Cancel("me", "enough"))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range tr.runs()[1:] {
		requested := false
		for c, err := range tr.store.Commits(t.Context(), run.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range c.Events {
				_, is := e.(*engine.CancelRequested)
				requested = requested || is
			}
		}
		equal(t, "acknowledged before run "+run.ID+" had it", requested, true)
	}
	equal(t, "status", tr.wait(x).Status, engine.Cancelled)
	for _, run := range tr.runs() {
		equal(t, run.ID, run.Head.Status, engine.Cancelled)
	}
}

func TestDepthLimitIsCheckedBeforeAnyChildStarts(t *testing.T) {
	tr := newTree(t)
	p := tr.add("again", "nodes:\n  down: {type: sub, with: {flow: self}}\n")
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Failed)
	equal(t, "code", r.Error.Code, engine.CodeDepth)
	equal(t, "runs", len(tr.runs()), 9)
}

func TestBudgetBindsTheWholeTreeUnderParallelCalls(t *testing.T) {
	l := &effectLog{reached: make(map[int]chan struct{})}
	tr := newTree(t, newWorkType(l, 0))
	tr.process(memory.New(), &commitLog{})
	tr.add("l0", "nodes:\n  a: {type: work}\n  b: {type: work}\n")
	tr.add("l1", "nodes:\n  x: {type: sub, with: {flow: l0}}\n  y: {type: sub, with: {flow: l0}}\n")
	p := tr.add("l2", "budget: {maxCalls: 5}\nnodes:\n  x: {type: sub, with: {flow: l1}}\n  y: {type: sub, with: {flow: l1}}\n")
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Failed)
	equal(t, "code", r.Error.Code, engine.CodeBudget)
	if l.started > 5 || r.Usage.Calls != l.started {
		t.Errorf("%d calls were made and %d counted, of a budget of 5", l.started, r.Usage.Calls)
	}
}

func TestChildContinuesAfterAnAncestorsBudgetIsIncreased(t *testing.T) {
	l := &effectLog{reached: make(map[int]chan struct{})}
	tr := newTree(t, newWorkType(l, 0))
	tr.process(memory.New(), &commitLog{})
	tr.add("l0", "nodes:\n  a: {type: work}\n  b: {type: work, after: a}\n  c: {type: work, after: b}\n")
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", "budget: {maxCalls: 2, onLimit: pause}\n"+wrapFlow("l1"))
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Paused)
	equal(t, "calls", l.started, 2)
	equal(t, "kind", r.Interrupts[0].Kind, engine.AwaitBudget)
	r = tr.answer(p, "r", r.Interrupts[0].ID, map[string]any{"maxCalls": int64(1)})
	equal(t, "status", r.Status, engine.Completed)
	equal(t, "usage", r.Usage.Calls, 3)
}

// says adds a message to its context.
func newSayType() node.Type {
	return &funcType{flow.TypeSpec{
		Name: "says", Version: 1, Context: flow.ContextWrite, Ports: flow.Ports{Out: []flow.Port{{Name: "seen", Type: flow.TypeNumber}}},
	}, func(ctx *node.Ctx) error {
		m, err := ctx.Context()
		if err != nil {
			return err
		}
		seen, err := m.Get().Messages()
		if err != nil {
			return err
		}
		ctx.Output("seen", int64(len(seen)))
		_, err = m.Add(convo.Message{Role: convo.User, Text: ctx.Info().Run})
		return err
	}}
}

func TestChildContextIsolation(t *testing.T) {
	for _, c := range []struct {
		isolation    string
		seen, length int64
	}{{"fresh", 0, 1}, {"fork", 1, 1}, {"share", 1, 3}} {
		t.Run(c.isolation, func(t *testing.T) {
			tr := newTree(t, newSayType())
			tr.add("l0", "nodes:\n  one: {type: says}\n  ask: {type: userInput, after: one, with: {prompt: more}}\n  two: {type: says, after: ask}\noutputs: {out: \"{{ one.seen }}\"}\n")
			p := tr.add("l1", `
nodes:
  first: {type: says}
  down: {type: sub, after: first, with: {flow: l0, isolation: `+c.isolation+`}}
  last: {type: says, after: down}
outputs: {out: "{{ down.out }}", end: "{{ last.seen }}"}
`)
			r := tr.wait(tr.start(p))
			equal(t, "status", r.Status, engine.Paused)
			_ = tr.local.Close(context.Background())
			tr.open() // another process continues
			r = tr.answer(p, "r", r.Interrupts[0].ID, "yes")
			equal(t, "status", r.Status, engine.Completed)
			seen, _ := r.Outputs.Get("out")
			equal[any](t, "messages that the child saw", seen, c.seen)
			end, _ := r.Outputs.Get("end")
			equal[any](t, "messages afterwards", end, c.length)
		})
	}
}

func TestStreamOfARunIncludesItsChildren(t *testing.T) {
	gate := make(chan struct{})
	tr := newTree(t, &funcType{flow.TypeSpec{Name: "gated", Version: 1}, func(ctx *node.Ctx) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	tr.add("l0", "nodes:\n  a: {type: gated}\n")
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", wrapFlow("l1"))
	x := tr.start(p)
	all := x.Items(t.Context(), 0)
	close(gate)
	seen := map[string]bool{}
	for it, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		seen[it.Run] = true
	}
	equal(t, "status", tr.wait(x).Status, engine.Completed)
	for _, run := range tr.runs()[1:] {
		equal(t, "seen "+run.ID, seen[run.ID], true)
	}
}
