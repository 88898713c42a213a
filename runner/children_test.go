package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// childFlowType is a node type that runs the flow its setting names.
type childFlowType struct{ spec flow.TypeSpec }

func newChildFlowType() *childFlowType {
	return &childFlowType{flow.TypeSpec{
		Name: "sub", Version: 1, Context: flow.ContextWrite,
		Ports: flow.Ports{
			In: []flow.Port{{Name: "in", Type: flow.TypeAny}},
			Out: []flow.Port{
				{Name: "out", Type: flow.TypeAny}, {Name: "error", Type: flow.TypeObject},
			},
		},
		Settings: map[string]any{
			"type": "object", "additionalProperties": false, "required": []any{"flow"},
			"properties": map[string]any{"flow": map[string]any{"type": "string"}, "isolation": map[string]any{"type": "string"}},
		},
	}}
}

// Spec describes the type.
func (s *childFlowType) Spec() *flow.TypeSpec { return &s.spec }

// Prepare reads the settings.
func (s *childFlowType) Prepare(with map[string]any) (node.Node, error) {
	ref, _ := with["flow"].(string)
	isolation, _ := with["isolation"].(string)
	return node.NodeFunc(func(ctx *node.Ctx) error {
		c := node.Child{Flow: ref, Isolation: isolation}
		if v, ok := ctx.Input("in"); ok {
			c.Inputs = engine.Values{{Name: "n", Value: v}}
		}
		r, err := ctx.Child(engine.ChildName, c)
		if err != nil {
			return err
		}
		if r.Error != nil {
			return r.Error
		}
		if v, ok := r.Outputs.Get("out"); ok {
			ctx.Output("out", v)
		}
		return nil
	}), nil
}

// tree is a store with programs that use each other, and a runner of them.
type tree struct {
	tb       testing.TB
	c        *node.Catalogue
	store    runner.Store
	local    *runner.Local
	services runner.Services
	flows    map[string]*flow.Flow
	programs map[string]*runner.Program // by fingerprint
}

func newTree(tb testing.TB, types ...node.Type) *tree {
	tb.Helper()
	c, err := node.NewCatalogue(append(append(builtin.Types(), newChildFlowType()), types...)...)
	if err != nil {
		tb.Fatal(err)
	}
	t := &tree{tb: tb, c: c, store: memory.New(), flows: map[string]*flow.Flow{}, programs: map[string]*runner.Program{}}
	t.open()
	return t
}

// open starts a runner, as a process would.
func (t *tree) open() {
	t.local = runner.NewLocal(runner.Options{
		Store: t.store, Services: t.services, Poll: 5 * time.Millisecond,
		Flow: func(_ context.Context, fingerprint string) (*runner.Program, error) {
			if p := t.programs[fingerprint]; p != nil {
				return p, nil
			}
			return nil, store.ErrNotFound
		},
	})
	local := t.local
	t.tb.Cleanup(func() { _ = local.Close(context.Background()) })
}

// add compiles a flow that may use those added before it by name, and itself.
func (t *tree) add(name, text string) *runner.Program {
	t.tb.Helper()
	f, err := flow.Parse(name, []byte("weir: 1\nname: "+name+"\n"+text), t.c)
	if err != nil {
		t.tb.Fatal(err)
	}
	for ref, used := range t.flows {
		f.Uses = append(f.Uses, flow.Use{Ref: ref, Flow: used})
	}
	p, err := runner.Prepare(f, t.c)
	if err != nil {
		t.tb.Fatal(err)
	}
	t.flows[name], t.programs[p.Fingerprint] = f, p
	return p
}

func (t *tree) start(p *runner.Program) *runner.Execution {
	t.tb.Helper()
	x, err := t.local.Start(t.tb.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.tb.Fatal(err)
	}
	return x
}

// wait returns how far the run has come once it rests.
func (t *tree) wait(x *runner.Execution) runner.Result {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.tb.Context(), 2*time.Minute)
	defer cancel()
	r, err := x.Wait(ctx)
	if err != nil {
		t.tb.Fatal(err)
	}
	return r
}

func (t *tree) answer(p *runner.Program, id, interrupt string, v any) runner.Result {
	t.tb.Helper()
	x, err := t.local.Do(t.tb.Context(), p, id, runner.Answer(interrupt, v, "me"))
	if err != nil {
		t.tb.Fatal(err)
	}
	return t.wait(x)
}

// runs lists the ids of the tree, parents first.
func (t *tree) runs() []store.Run {
	t.tb.Helper()
	list, err := t.store.Runs(t.tb.Context(), store.Filter{Limit: 10_000})
	if err != nil {
		t.tb.Fatal(err)
	}
	out := []store.Run{}
	var below func(id string)
	below = func(id string) {
		for _, r := range list {
			if r.ID == id {
				out = append(out, r)
			}
		}
		for _, r := range list {
			if r.Parent == id {
				below(r.ID)
			}
		}
	}
	below("r")
	return out
}

func ids(list []engine.Interrupt) string {
	var s []string
	for _, i := range list {
		s = append(s, i.ID)
	}
	return strings.Join(s, " ")
}

func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

const doubleFlow = `
inputs: {n: {type: any}}
nodes:
  twice: {type: transform, in: {n: "{{ run.inputs.n }}"}, with: {expr: inputs.n * 2}}
outputs: {out: "{{ twice.value }}"}
`

func TestNodeRunsAFlowAsAChildAndGetsItsOutputs(t *testing.T) {
	tr := newTree(t)
	tr.add("double", doubleFlow)
	p := tr.add("root", `
nodes:
  a: {type: sub, in: {in: 21}, with: {flow: double}}
outputs: {n: "{{ a.out }}"}
`)
	r := tr.wait(tr.start(p))
	n, _ := r.Outputs.Get("n")
	equal[any](t, "output", n, int64(42))
	list := tr.runs()
	equal(t, "runs", len(list), 2)
	equal(t, "parent", list[1].Parent, "r")
	equal(t, "status", list[1].Head.Status, engine.Completed)
}

const askFlow = `
nodes:
  ask: {type: userInput, with: {prompt: "Your name?"}}
outputs: {out: "{{ ask.text }}"}
`

func wrapFlow(inner string) string {
	return fmt.Sprintf("nodes:\n  down: {type: sub, with: {flow: %s}}\noutputs: {out: \"{{ down.out }}\"}\n", inner)
}

func TestChildQuestionSurfacesAtTheRootAndItsAnswerReachesIt(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	var p *runner.Program
	for i := 1; i <= 5; i++ {
		p = tr.add(fmt.Sprintf("l%d", i), wrapFlow(fmt.Sprintf("l%d", i-1)))
	}
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Paused)
	equal(t, "interrupts", ids(r.Interrupts), "down>down>down>down>down>ask:ask#1")
	equal(t, "prompt", r.Interrupts[0].Prompt, "Your name?")
	for _, run := range tr.runs() {
		equal(t, run.ID, run.Head.Status, engine.Paused)
		equal(t, run.ID+" owner", run.Owner, "")
	}
	r = tr.answer(p, "r", r.Interrupts[0].ID, "Ada")
	equal(t, "status", r.Status, engine.Completed)
	out, _ := r.Outputs.Get("out")
	equal[any](t, "output", out, "Ada")
	_, err := tr.local.Do(t.Context(), p, "r", runner.Answer("down>down>down>down>down>ask:ask#1", "Bob", ""))
	if !errors.Is(err, runner.ErrNoInterrupt) {
		t.Fatalf("a second answer: %v", err)
	}
}

func TestAnsweringAChildDirectlyContinuesItsAncestors(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", wrapFlow("l1"))
	tr.wait(tr.start(p))
	grandchild := tr.runs()[2]
	tr.answer(tr.programs[grandchild.Fingerprint], grandchild.ID, "ask:ask#1", "Ada")
	x, err := tr.local.Resume(t.Context(), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return tr.runs()[0].Head.Status == engine.Completed })
	_ = x
}

// answerOnly leaves an answer in a run's journal as a process does that dies
// before the runs above are notified.
func (t *tree) answerOnly(r store.Run, interrupt string, v any) {
	t.tb.Helper()
	lease, err := t.store.Acquire(t.tb.Context(), r.ID, "dead", time.Minute)
	if err != nil {
		t.tb.Fatal(err)
	}
	err = errors.Join(t.store.Append(t.tb.Context(), []store.Append{{
		Commit: engine.Commit{
			Run: r.ID, Seq: r.Commits + 1, First: r.Events + 1, At: time.Now().UnixMilli(),
			Events: []engine.Event{&engine.InterruptAnswered{ID: interrupt, Value: v}},
		},
		Fence: lease.Fence, Head: store.Head{Status: engine.Running},
	}})...)
	if err = errors.Join(err, t.store.Release(t.tb.Context(), lease)); err != nil {
		t.tb.Fatal(err)
	}
}

func TestResumingTheRootFindsAChildAnsweredBeforeACrash(t *testing.T) {
	for depth := 1; depth <= 4; depth++ {
		tr := newTree(t)
		tr.add("l0", askFlow)
		var p *runner.Program
		for i := 1; i <= depth; i++ {
			p = tr.add(fmt.Sprintf("l%d", i), wrapFlow(fmt.Sprintf("l%d", i-1)))
		}
		tr.wait(tr.start(p))
		tr.answerOnly(tr.runs()[depth], "ask:ask#1", "Ada")
		if err := tr.local.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		tr.open() // as another process
		x, err := tr.local.Resume(t.Context(), p, "r")
		if err != nil {
			t.Fatal(err)
		}
		r := tr.wait(x)
		equal(t, fmt.Sprintf("status, %d runs below", depth), r.Status, engine.Completed)
		out, _ := r.Outputs.Get("out")
		equal[any](t, "output", out, "Ada")
	}
}

// eventually waits for a condition that another goroutine makes true.
func eventually(tb testing.TB, f func() bool) {
	tb.Helper()
	late, tick := time.After(2*time.Minute), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatal("it did not come about in 2 minutes")
		}
	}
}
