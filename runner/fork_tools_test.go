package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
)

// toolFlows are flows whose node work may call the tool look, named in another way
// each; before is before it and after behind it.
var toolFlows = map[string]string{
	"by its node":      `{type: llmRequest, in: {message: "{{ before.text }}", tools: [look]}}`,
	"by an agent":      `{type: agent, in: {message: "{{ before.text }}", tools: [look, other]}}`,
	"as all there are": `{type: tools, after: before}`,
	"in a loop": `{type: loop, in: {x: "{{ before.text }}"}, with: {max: 1, body: {nodes: {
      a: {type: llmRequest, in: {message: "{{ inputs.x }}", tools: [look]}}}, outputs: {text: "{{ a.text }}"}}}}`,
	"in a flow that it runs": `{type: flow, after: before, with: {flow: inner}}`,
}

const toolFlowInner = `
weir: 1
name: inner
context: {model: m/m}
nodes: {a: {type: llmRequest, in: {message: "Go.", tools: [look]}}}
outputs: {text: "{{ a.text }}"}
`

func TestForkSharesHistoryUpToNodeWithChangedTools(t *testing.T) {
	t.Parallel()
	for how, work := range toolFlows {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			text := `
weir: 1
name: handy
context: {model: m/m}
nodes:
  before: {type: template, with: {text: "Tell me what look does."}}
  work: ` + work + `
  after: {type: template, after: work, with: {text: done}}
outputs: {text: "{{ after.text }}"}
`
			path := filepath.Join(t.TempDir(), "weir.db")
			w := openWithTools(t, path, []*weir.Tool{lookToolDescribed("Looks."), otherTool()})
			ran(t, w, text)
			for then, tools := range map[string][]*weir.Tool{
				"which was changed":              {lookToolDescribed("Looks twice."), otherTool()},
				"which is no longer offered":     {otherTool()},
				"a fork of run run with nothing": {lookToolDescribed("Looks."), otherTool(), {Name: "third", Call: emptyTool}},
			} {
				w := openWithTools(t, path, tools)
				p, err := w.PlanFork(t.Context(), "run", weir.ForkOptions{})
				checkToolPlan(t, p, err, then)
				if err := w.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			w = openWithTools(t, path, []*weir.Tool{lookToolDescribed("Looks twice."), otherTool()})
			t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
			fork, _, err := w.Fork(t.Context(), "run", weir.ForkOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r := weirkit.Wait(t, fork); r.Status != engine.Completed {
				t.Errorf("the fork ended with %+v", r)
			}
		})
	}
}

// checkToolPlan holds a plan to what has become of the tool look.
func checkToolPlan(t *testing.T, p *weir.ForkPlan, err error, then string) {
	t.Helper()
	if strings.HasPrefix(then, "a fork") {
		if forkCode(err) == "" || !strings.Contains(err.Error(), then) {
			t.Errorf("one more tool is another past: %v", err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", then, err)
		return
	}
	want := map[string]runner.ForkedNode{
		"before": {Reuse: runner.NodeReused},
		"work":   {Reuse: runner.NodeRestarts, Reason: "names the tool look, " + then},
		"after":  {Reuse: runner.NodeRestarts, Reason: "comes after work"},
	}
	for _, n := range p.Nodes {
		if w := want[n.Path]; n.Reuse != w.Reuse || n.Reason != w.Reason {
			t.Errorf("%s: %s is %s, %q, and should be %s, %q", then, n.Path, n.Reuse, n.Reason, w.Reuse, w.Reason)
		}
	}
}

func TestTextNamingChangedToolDoesNotRerunNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	w := openWithTools(t, path, []*weir.Tool{lookToolDescribed("Looks."), otherTool()})
	ran(t, w, `
weir: 1
name: handy
context: {model: m/m}
nodes:
  before: {type: template, with: {text: "Tell me what look does."}}
  work: {type: llmRequest, in: {message: "{{ before.text }}", tools: [other]}}
  last: {type: llmRequest, after: work, in: {message: "And?", tools: [look]}}
`)
	w = openWithTools(t, path, []*weir.Tool{lookToolDescribed("Looks twice."), otherTool()})
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	p, err := w.PlanFork(t.Context(), "run", weir.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.Nodes {
		if reused := n.Reuse == runner.NodeReused; reused != (n.Path != "last") {
			t.Errorf("%s is %s: %s", n.Path, n.Reuse, n.Reason)
		}
	}
}

// ran runs a flow to its end and closes the Weir.
func ran(t *testing.T, w *weir.Weir, text string) {
	t.Helper()
	inner, err := w.Parse("inner.yaml", []byte(toolFlowInner))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("flow.yaml", []byte(text), inner)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Fatalf("%+v", r)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func forkCode(err error) string {
	if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == engine.CodeFork {
		return e.Code
	}
	return ""
}

func lookToolDescribed(says string) *weir.Tool {
	return &weir.Tool{Name: "look", Description: says, ReadOnly: true, Call: emptyTool}
}

func otherTool() *weir.Tool {
	return &weir.Tool{Name: "other", Description: "Another.", ReadOnly: true, Call: emptyTool}
}
