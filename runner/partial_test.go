package runner_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// A call that does not return after a cancellation is given up after 10 seconds. What it has emitted is kept, also below a
// composite and in a child run; the output of a completed effect before it is not.
func TestPartialAnswerOfAnAbandonedCallIsKept(t *testing.T) {
	for name, text := range map[string]string{
		"direct":  "nodes: {deaf: {type: deaf}}\n",
		"forEach": "nodes: {each: {type: forEach, in: {items: [1]}, with: {body: {nodes: {deaf: {type: deaf}}}}}}\n",
		"child":   "nodes: {down: {type: sub, with: {flow: inner}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testAbandonedCall(t, text) })
		})
	}
}

func testAbandonedCall(t *testing.T, text string) {
	t.Helper()
	begun, release := make(chan struct{}), make(chan struct{})
	deaf := &funcType{flow.TypeSpec{Name: "deaf", Version: 1}, func(ctx *node.Ctx) error {
		if _, err := ctx.Do(node.Effect{Name: "model", Do: func(context.Context, string) (node.Outcome, error) {
			ctx.Emit(llm.Chunk{Text: "complete"})
			return node.Outcome{}, nil
		}}); err != nil {
			return err
		}
		_, err := ctx.Do(node.Effect{Name: "model", Do: func(context.Context, string) (node.Outcome, error) {
			ctx.Emit(llm.Chunk{Text: "The answer "})
			ctx.Emit(llm.Chunk{Text: "begins"})
			close(begun)
			<-release
			return node.Outcome{}, nil
		}})
		return err
	}}
	tr := newTree(t, deaf)
	tr.add("inner", "nodes: {deaf: {type: deaf}}\n")
	p := tr.add("root", text)
	x := tr.start(p)
	<-begun
	if _, err := tr.local.Do(t.Context(), p, "r", runner.Cancel("me", "enough")); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", tr.wait(x).Status, engine.Cancelled)
	var kept []string
	for _, run := range tr.runs() {
		for c, err := range tr.store.Commits(t.Context(), run.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range c.Events {
				if n, ok := e.(*engine.NoteRecorded); ok {
					text, _ := runner.PartialOf(n)
					kept = append(kept, text)
				}
			}
		}
	}
	equal(t, "kept", fmt.Sprint(kept), "[The answer begins]")
	close(release)
	if err := tr.local.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
