package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// send applies events from outside, written as in golden runs, and all that follows.
func (g *golden) send(events ...string) {
	g.t.Helper()
	for _, e := range events {
		g.step(g.decode(e))
	}
	if i := strings.Index(g.out.String(), "! "); i >= 0 {
		g.t.Fatal(g.out.String()[i:])
	}
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %#v, want %#v", what, got, want)
	}
}

const chatFlow = `
weir: 1
name: chat
context: {model: p/m}
nodes:
  first: {type: step}
  choose: {type: step, after: first, with: {branches: [left, right]}}
  left: {type: step, after: choose.left, in: {x: "{{ first.value }}"}}
  right: {type: step, after: choose.right}
  talk: {type: step, after: left, with: {say: true}, retry: {attempts: 2, backoff: 1s}}
outputs: {out: "{{ left.value }}"}
`

func TestRunReportsActivityOfItsNodes(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "chat.yaml", chatFlow)
	r := g.run
	g.send(`run.started {"flow":"chat","fingerprint":"f","parallel":4}`)
	expect(t, "unstarted", r.Unstarted("talk"), true)
	expect(t, "executing", r.Executing(), []string{"first"})
	expect(t, "idle", r.Idle(), false)
	expect(t, "activity", r.Activity(), engine.Executing)
	g.send(`effect.started {"key":"first/get#1"}`,
		`effect.completed {"key":"first/get#1","result":7,"usage":{"calls":1,"input":5}}`,
		`step.recorded {"node":"first","number":3,"name":"code_generation","attempt":1,"status":"failed"}`)
	expect(t, "started effects", len(r.StartedEffects("first")), 1)
	expect(t, "result", r.Effects("first")["first/get#1"].Result, engine.Value(int64(7)))
	expect(t, "steps", r.Steps("first"), []string{"3.code_generation.1.failed.1"})
	expect(t, "usage", r.Usage(), engine.Usage{Calls: 1, Input: 5})
	g.send(`node.completed {"node":"first","outputs":{"value":1}}`, `node.completed {"node":"choose","outputs":{"left":true}}`)
	s, ok := r.ScopeOf("left")
	expect(t, "scope", ok, true)
	expect(t, "status in scope", s.Status("right"), engine.Skipped)
	expect(t, "status of an unknown node", s.Status("nobody"), engine.Pending)
	expect(t, "untaken edge", s.UntakenEdge("right"), "choose.right")
	expect(t, "untaken edge of an unknown node", s.UntakenEdge("nobody"), "")
	expect(t, "owner of the root", s.Owner(), "")
	e, ok := r.Entry("left")
	expect(t, "entry", ok && e.Attempt == 1 && !e.Resumed, true)
	expect(t, "inputs", e.Inputs.Map(), map[string]engine.Value{"x": int64(1)})
	expect(t, "origin", r.Origin("left", "x"), "first.value")
	_, ok = r.Entry("talk")
	expect(t, "entry of a node that does not execute", ok, false)
	g.send(`node.completed {"node":"left","outputs":{"value":"v"}}`)
	ids, writes := r.ContextsOf("talk")
	expect(t, "contexts", fmt.Sprint(ids, writes), "[main] true")
	ids, writes = r.ContextsOf("first")
	expect(t, "contexts of a node without", ids == nil && !writes, true)
	expect(t, "length of main", r.ContextLength("main"), 0)
	expect(t, "length of a missing context", r.ContextLength("other"), -1)
	again := &engine.Error{Code: "x"}
	expect(t, "would retry", r.WouldRetry("talk", again), true)
	expect(t, "would retry permanently failed", r.WouldRetry("talk", &engine.Error{Code: "x", Permanent: true}), false)
	expect(t, "would retry without policy", r.WouldRetry("first", again), false)
	g.send(`node.failed {"node":"talk","error":{"code":"x","message":"m"}}`)
	expect(t, "activity", r.Activity(), engine.AwaitsTimers)
	expect(t, "status while a timer runs", r.Status(), engine.Running)
	g.now = 5000
	g.send(`timer.fired {"timer":"talk"}`, `node.failed {"node":"talk","error":{"code":"x","message":"m","node":"talk"}}`)
	expect(t, "status", r.Status(), engine.Failed)
	expect(t, "failure", r.Failure().Error(), "talk: m (x)")
	expect(t, "failure of the node", r.FailureOf("talk").Code, "x")
	expect(t, "failure of another", r.FailureOf("first"), nil)
	expect(t, "status of the node", r.StatusOf("talk"), engine.Failed)
	expect(t, "status of an unknown node", r.StatusOf("nobody"), engine.Pending)
	expect(t, "can override", r.CanOverride("talk") && !r.CanOverride("first") && !r.CanOverride("nobody"), true)
	expect(t, "time", r.Now(), 5000)
	expect(t, "events", r.Events(), int64(len(g.journal)))
}

func TestInterruptsAndAnswersAreFoundByTheirIDs(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "asks.yaml", "weir: 1\nname: asks\nnodes:\n  ask: {type: step}\n  part: {type: step}\n")
	r := g.run
	g.send(`run.started {"flow":"asks","fingerprint":"f","parallel":4}`,
		`node.waiting {"node":"ask","interrupts":[{"id":"ask:answer#1","kind":"input","prompt":"Well?"},{"id":"ask:tool#1","kind":"approval","event":"files/write"}]}`,
		`node.waiting {"node":"part","interrupts":[{"id":"part:child#1","kind":"child","child":{"run":"c","fingerprint":"g","main":{"context":"main","create":true}}}]}`)
	expect(t, "activity", r.Activity(), engine.AwaitsChildren)
	expect(t, "has open child", r.HasOpenChild("part") && !r.HasOpenChild("ask"), true)
	c := r.OpenChildren()
	expect(t, "open children", len(c) == 1 && c[0].ID == "part:child#1" && c[0].Node == "part" && c[0].Active() && !c[0].ToCancel, true)
	g.send(`child.reported {"interrupt":"part:child#1","status":"paused","interrupts":[{"id":"inner:q#1","kind":"input"}]}`)
	inner, id, ok := r.ChildInterrupt("part>inner:q#1")
	expect(t, "interrupt of the child", ok && inner.ID == "part:child#1" && id == "inner:q#1" && !inner.Active(), true)
	_, _, ok = r.ChildInterrupt("ask>inner:q#1")
	expect(t, "interrupt of no child", ok, false)
	_, _, ok = r.ChildInterrupt("ask:answer#1")
	expect(t, "interrupt of the run itself", ok, false)
	child, ok := r.OpenChild("part:child#1")
	expect(t, "open child", ok && child.Start.Run == "c", true)
	_, ok = r.OpenChild("ask:answer#1")
	expect(t, "open child of a question", ok, false)
	i, path, ok := r.Interrupt("part>inner:q#1")
	expect(t, "interrupt by its outer id", ok && path == "part" && i.Kind == engine.AwaitInput, true)
	i, path, ok = r.Interrupt("ask:answer#1")
	expect(t, "interrupt", ok && path == "ask" && i.Prompt == "Well?", true)
	_, _, ok = r.Interrupt("ask:answer#2")
	expect(t, "unknown interrupt", ok, false)
	expect(t, "awaits child", r.AwaitsChild("part:child#1") && !r.AwaitsChild("ask:answer#1"), true)
	expect(t, "forkable", r.Forkable(), true)
	g.send(`interrupt.answered {"interrupt":"ask:tool#1","value":"approve_run","by":"ada"}`)
	if a := r.Answers("ask")["ask:tool#1"]; a == nil || !a.Given || a.Value != "approve_run" || a.By != "ada" {
		t.Errorf("the answer is %+v", a)
	}
	g.send(`cancel.requested {"by":"ada"}`)
	expect(t, "cancelling", r.Cancelling() && r.CancelRequested() && r.Aborted("part"), true)
	expect(t, "forkable while cancelled", r.Forkable(), false)
	child, _ = r.OpenChild("part:child#1")
	expect(t, "child to cancel", child.ToCancel, true)
}

func TestIterationsHaveScopesOfTheirOwn(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "loop.yaml", `
weir: 1
name: loop
nodes:
  each:
    type: forEach
    in: {items: [1, 2]}
    with:
      concurrency: 2
      body: {nodes: {one: {type: step}, two: {type: step, after: one}}, outputs: {o: "{{ one.value }}"}}
`)
	r := g.run
	g.send(`run.started {"flow":"loop","fingerprint":"f","parallel":4,"state":{"k":1}}`,
		`node.expanded {"node":"each","items":[{"item":1},{"item":2}],"concurrency":2,"fork":true}`,
		`node.completed {"node":"each#1/one","outputs":{"value":"a"},"state":[{"key":"k","value":2}]}`)
	s, ok := r.ScopeAt("each#1")
	expect(t, "scope", ok && s.Owner() == "each" && s.Graph() == g.plan.Root.Nodes[0].Body, true)
	expect(t, "inputs of the iteration", s.Inputs().Map(), map[string]engine.Value{"item": int64(1)})
	v, _ := r.ScopeState(s).Get("k")
	expect(t, "state of the lane", v, engine.Value(int64(2)))
	other, ok := r.StateOf("each#2/one")
	v, _ = other.Get("k")
	expect(t, "state of the other lane", ok && v == engine.Value(int64(1)) && other.Len() == 1, true)
	_, ok = r.StateOf("each#3/one")
	expect(t, "state of a missing iteration", ok, false)
	root, _ := r.ScopeAt("")
	v, _ = r.ScopeState(root).Get("k")
	expect(t, "state of the run", v, engine.Value(int64(1)))
	expect(t, "executing", r.Executing(), []string{"each#1/two", "each#2/one"})
	expect(t, "plan of an inner node", g.plan.Find("each#2/one").Def.ID, "one")
	for _, path := range []string{"none", "each#1/none", "each#1/one/deeper"} {
		if g.plan.Find(path) != nil {
			t.Errorf("there is a plan of %s", path)
		}
	}
	g.send(`node.failed {"node":"each#2/one","error":{"code":"x","message":"m"}}`)
	expect(t, "failure in the scope", s.Failure("one"), nil)
}

func TestForkKeepsItsPastAndNothingElseOfTheRun(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "asks.yaml", "weir: 1\nname: asks\nnodes:\n  ask: {type: step}\n")
	r := g.run
	g.send(`run.started {"flow":"asks","fingerprint":"f","parallel":4,"parent":"p","depth":2,"session":"s","round":3,"inputs":{"x":1}}`,
		`effect.completed {"key":"ask/model#1","result":"r","usage":{"calls":1,"input":9}}`,
		`node.waiting {"node":"ask","interrupts":[{"id":"ask:tool#1","kind":"approval","event":"e"}]}`,
		`run.forked {"from":"r0","at":4,"then":1000,"flow":"asks","fingerprint":"f2","inputs":{"x":2},"origin":"go","contexts":[{"context":"main","body":{}}]}`)
	expect(t, "fork", r.Forked().From, "r0")
	expect(t, "shared usage", r.SharedUsage(), engine.Usage{Calls: 1, Input: 9})
	expect(t, "usage", r.Usage(), engine.Usage{})
	x, _ := r.Start.Inputs.Get("x")
	expect(t, "inputs", x, engine.Value(int64(2)))
	expect(t, "links", fmt.Sprintf("%q %q %d %d %s %s %d", r.Start.Parent, r.Start.Session, r.Start.Depth, r.Start.Round, r.Start.Fingerprint, r.Start.Origin, len(r.Start.Contexts)), `"" "" 0 0 f2 go 2`)
	data, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	start, err := engine.SnapshotStart(data)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "start in the snapshot", start.Fingerprint, "f2")
	for _, bad := range []string{"", "{}", `{"start":[]}`, `{"start":[{"type":"run.cancelled"}]}`} {
		if s, err := engine.SnapshotStart([]byte(bad)); err == nil {
			t.Errorf("%q has the start %+v", bad, s)
		}
	}
}

func TestIncreasesOfBudgetsAboveAreReported(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "asks.yaml", "weir: 1\nname: asks\nbudget: {maxCalls: 4}\nnodes:\n  ask: {type: step}\n")
	r := g.run
	g.send(`run.started {"flow":"asks","fingerprint":"f","parallel":4,"parent":"p","allowances":[{"path":".p|part","onLimit":"pause","max":{"calls":3,"input":100,"cost":50},"used":{"calls":1}}]}`,
		`effect.started {"key":"ask/model#1","reserve":{"calls":1,"input":10}}`,
		`node.waiting {"node":"ask","interrupts":[{"id":"ask:b#1","kind":"budget","event":"p|part"},{"id":"ask:b#2","kind":"budget","event":"."}]}`,
		`interrupt.answered {"interrupt":"ask:b#1","value":{"maxCalls":2,"maxTokens":30,"maxCost":0.5}}`,
		`node.waiting {"node":"ask","interrupts":[{"id":"ask:b#2","kind":"budget","event":"."}]}`,
		`interrupt.answered {"interrupt":"ask:b#2","value":{"maxCalls":6}}`)
	above := r.IncreasesAbove()
	if len(above) != 1 || above[0].Path != "p|part" || above[0].Max != (engine.Usage{Calls: 2, Input: 30, CostMicros: 500_000}) {
		t.Errorf("the increases above are %+v", above)
	}
	own := r.Accounts("ask")
	expect(t, "own budget", own[0].Path == "." && own[0].Max.Calls == 10 && own[0].OnLimit == "fail", true)
	outer := own[1]
	expect(t, "allowance", outer.OnLimit == "pause" && outer.Max.Input >= 100 && outer.Used.Calls >= 2, true)
	expect(t, "tokens", engine.Usage{Input: 3, Output: 4}.Tokens(), 7)
	expect(t, "approvals", len(r.Approvals()), 0)
}

func TestApplyCommitNamesTheCommitOfAnInvalidEvent(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "asks.yaml", "weir: 1\nname: asks\nnodes:\n  ask: {type: step}\n")
	c := engine.Commit{Run: "r", Seq: 7, First: 1, At: 3000, Events: []engine.Event{
		&engine.RunStarted{Flow: "asks", Parallel: 1}, &engine.RunForked{From: "r0", AtTime: 1000}, &engine.NodeStarted{Path: "nobody"},
	}}
	err := g.run.ApplyCommit(c)
	if err == nil || err.Error() != "commit 7 of run r: journal: node.started names nobody, which does not exist" {
		t.Errorf("the error is %v", err)
	}
	expect(t, "time before the fork", c.When(0), int64(1000))
	expect(t, "time of the fork", c.When(1), int64(3000))
	expect(t, "run's time", g.run.Now(), int64(3000))
}

func TestNodeUsesFollowTheTargets(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "uses.yaml", `
weir: 1
name: uses
nodes:
  a: {type: step}
  b: {type: step, in: {x: "{{ a.error }}"}}
  c: {type: step, with: {lazy: true}, in: {pull: "{{ d.value }}"}}
  d: {type: step}
`)
	all := g.plan.NodeUses(nil)
	expect(t, "a", all["a"], engine.NodeUse{Needed: true, ErrorHandled: true})
	expect(t, "d", all["d"], engine.NodeUse{})
	some := g.plan.NodeUses([]string{"b"})
	expect(t, "limited", fmt.Sprint(some["a"].Needed, some["b"].Needed, some["c"].Needed), "true true false")
}

func TestEventPathNamesTheNodeOfEveryKindOfEvent(t *testing.T) {
	t.Parallel()
	const runEvents = "run.started run.forked changes.accepted cancel.requested run.completed run.failed run.cancelled"
	fields := map[string]string{
		"effect.started": `"key":"p/n#1"`, "effect.completed": `"key":"p/n#1"`, "interrupt.answered": `"interrupt":"p:n#1"`,
		"child.reported": `"interrupt":"p:n#1","status":"paused"`, "timer.fired": `"timer":"p"`, "iteration.started": `"scope":"p"`, "iteration.completed": `"scope":"p"`,
	}
	g := &golden{t: t}
	for kind := range strings.FieldsSeq(runEvents + ` node.started node.resumed node.waiting node.pulling node.expanded node.completed node.failed
		node.retrying node.errored node.skipped node.not_needed node.cancelled node.forced step.recorded note.recorded effect.started
		effect.completed interrupt.answered child.reported timer.fired iteration.started iteration.completed`) {
		f, ok := fields[kind]
		if !ok {
			f = `"node":"p"`
		}
		want := "p"
		if slices.Contains(strings.Fields(runEvents), kind) {
			f, want = "", ""
		}
		e := g.decode(strings.TrimSpace(kind + " {" + f + "}"))
		expect(t, kind, engine.EventPath(e), want)
		if kind != "run.started" && len(engine.ContextChanges(e)) != 0 {
			t.Errorf("%s changes contexts", kind)
		}
	}
	change := []engine.ContextChange{{ID: "main", Adds: 1}}
	for _, e := range []engine.Event{
		&engine.RunStarted{Contexts: change}, &engine.NodeStarted{Forks: change}, &engine.NodeResumed{Forks: change},
		&engine.NodeCompleted{Contexts: change}, &engine.NodeFailed{Contexts: change}, &engine.NodeCancelled{Contexts: change}, &engine.RunForked{Contexts: change},
	} {
		expect(t, e.Kind(), engine.ContextChanges(e), change)
	}
}

func TestErrorCodesAreUniqueAndExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range engine.Codes() {
		if seen[c.Code] || c.Code == "" || !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Remedy, ".") && !strings.HasSuffix(c.Remedy, "}") {
			t.Errorf("the row of %q is repeated or incomplete: %+v", c.Code, c)
		}
		seen[c.Code] = true
	}
	if len(seen) < 60 {
		t.Errorf("only %d codes", len(seen))
	}
}

func TestReducersCombineNumbersListsAndObjects(t *testing.T) {
	t.Parallel()
	type list = []any
	type object = map[string]any
	for _, c := range []struct {
		red     flow.Reducer
		old     engine.Value
		present bool
		written engine.Value
		want    engine.Value // the text of an error in an error
	}{
		{flow.ReduceSum, nil, false, int64(2), int64(2)},
		{flow.ReduceSum, int64(1), true, int64(2), int64(3)},
		{flow.ReduceSum, int64(1), true, 0.5, 1.5},
		{flow.ReduceSum, int64(1 << 62), true, int64(1 << 62), float64(1 << 63)},
		{flow.ReduceSum, 1e308, true, 1e308, fmt.Errorf("+Inf is not a number")},
		{flow.ReduceSum, "a", true, int64(1), fmt.Errorf("sum needs numbers")},
		{flow.ReduceSum, nil, false, "a", fmt.Errorf("sum needs a number")},
		{flow.ReduceMax, int64(1), true, int64(2), int64(2)},
		{flow.ReduceMax, int64(3), true, 2.5, int64(3)},
		{flow.ReduceMin, int64(3), true, 2.5, 2.5},
		{flow.ReduceMin, int64(1), true, int64(2), int64(1)},
		{flow.ReduceAppend, list{"a"}, true, list{"b", "c"}, list{"a", "b", "c"}},
		{flow.ReduceAppend, "a", true, "b", list{"a", "b"}},
		{flow.ReduceAppend, nil, false, "b", list{"b"}},
		{flow.ReduceMerge, object{"a": int64(1)}, true, object{"a": int64(2), "b": int64(3)}, object{"a": int64(2), "b": int64(3)}},
		{flow.ReduceMerge, object{}, true, "x", fmt.Errorf("merge needs objects")},
		{flow.ReduceMerge, nil, false, "x", fmt.Errorf("merge needs an object")},
		{flow.ReduceReplace, "a", true, "b", "b"},
		{flow.ReduceNone, "a", true, "b", "b"},
		{"other", "a", true, "b", fmt.Errorf("unknown reducer")},
	} {
		got, err := engine.Reduce(c.red, c.old, c.present, c.written)
		if want, fails := c.want.(error); fails {
			if err == nil || !strings.Contains(err.Error(), want.Error()) {
				t.Errorf("%s of %v and %v: %v, %v, want %v", c.red, c.old, c.written, got, err, want)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of %v and %v: %v, %v, want %v", c.red, c.old, c.written, got, err, c.want)
		}
	}
}
