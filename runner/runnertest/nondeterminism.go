package runnertest

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// testNondeterminism runs a node that asks for one thing before it waits for a person and
// for another when it is entered again with the answer.
func testNondeterminism(t *testing.T, s Subject) {
	entered, asked := 0, 0
	p := program(t, `
weir: 1
name: deviant
nodes:
  a: {type: do, with: {call: deviate}}
outputs: {v: "{{ a.value }}"}
`, funcType{"deviate": func(c *node.Ctx) error {
		entered++
		_, err := c.Do(node.Effect{Name: "pay", Request: int64(entered), Do: func(context.Context, string) (node.Outcome, error) {
			asked = entered
			return node.Outcome{Value: "paid"}, nil
		}})
		if err != nil {
			return err
		}
		_, _, err = c.Wait("q", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "?"})
		c.Output("value", "through")
		return err
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{Answer: func(engine.Interrupt) (engine.Value, bool) { return "go on", true }})
	if r.Status != engine.Failed || r.Error == nil || r.Error.Code != engine.CodeNondeterministic || r.Error.Node != "a" {
		t.Fatalf("got %+v, %v", r.Result, r.Error)
	}
	if !strings.Contains(r.Error.Message, "a/pay#1") {
		t.Errorf("the error does not name the key: %s", r.Error.Message)
	}
	if asked == entered {
		t.Error("the other thing was asked for")
	}
}
