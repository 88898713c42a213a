package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// lookingUpModel is a model that calls the tool look once for each question with "look" in
// it, and else answers what it was asked in capitals.
type lookingUpModel struct{}

func (lookingUpModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	m := convo.Message{Role: convo.Assistant, Text: strings.ToUpper(last.Text)}
	switch {
	case strings.Contains(last.Text, "break"):
		return nil, &llm.Error{Code: "model_filtered", Message: "I cannot."}
	case last.Role == convo.User && strings.Contains(last.Text, "look") && len(r.Tools) > 0:
		m = convo.Message{Role: convo.Assistant, Calls: []convo.Call{
			{ID: "c1", Name: "look", Arguments: `{"at":"orders"}`}, {ID: "c2", Name: "look", Arguments: `{"at":"notes"}`},
		}}
	case last.Role == convo.Tool:
		m.Text = "Seen."
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 10, Output: 2}}, nil
}

func lookTool() *weir.Tool {
	return &weir.Tool{
		Name: "look", Description: "Looks at a table.", Parameters: map[string]any{"type": "object"},
		Call: func(_ context.Context, c tool.Call) (string, error) {
			name := "notes"
			if strings.Contains(c.Arguments, "orders") {
				name = "orders"
			}
			return "12 rows", c.Declare(trajectory.Artifact{Type: trajectory.Table, Name: name, Columns: []string{"id", "price"}})
		},
	}
}

func openLookingUp(t *testing.T, o weir.Options, paint ...weir.Provider) *weir.Weir {
	t.Helper()
	o.Providers = map[string]weir.Provider{"clerk": lookingUpModel{}}
	if len(paint) > 0 {
		o.Providers["paint"] = paint[0]
	}
	o.Tools = append(o.Tools, lookTool())
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func runOf(t *testing.T, w *weir.Weir, text string, s weir.Start) weir.Result {
	t.Helper()
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, s)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// graphText returns a graph as lines: "name Type kind <- predecessors (relation)".
func graphText(g *trajectory.Graph) string {
	names := map[trajectory.ID]string{}
	for _, n := range g.Nodes {
		id := string(n.ID)
		names[n.ID] = id[strings.IndexByte(id, '(')+1 : len(id)-1]
	}
	var b strings.Builder
	for _, n := range g.Nodes {
		text, _ := n.Attributes[trajectory.AttrText].(string)
		kind, _ := n.Attributes[trajectory.AttrKind].(string)
		fmt.Fprintf(&b, "%s", names[n.ID])
		for _, s := range []string{kind, n.Name, text} {
			if s != "" {
				fmt.Fprintf(&b, " %s", s)
			}
		}
		for _, e := range g.Edges {
			if e.Target == n.ID {
				fmt.Fprintf(&b, " <-%s- %s", e.Relationship, names[e.Source])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// trajectoryBuilder are flows, each with what its trajectory has to be.
func trajectoryFlows() map[string]string {
	return map[string]string{
		"one": `
weir: 1
name: one
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  a: {type: llmRequest, in: {message: "{{ run.inputs.q }}", tools: [look]}}
  b: {type: llmRequest, in: {message: "and {{ a.text }}"}}
outputs: {x: "{{ b.text }}"}
`,
		"wide": `
weir: 1
name: wide
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  c1: {type: newContext}
  c2: {type: newContext}
  a: {type: llmRequest, in: {message: "one {{ run.inputs.q }}", context: "{{ c1.context }}"}}
  b: {type: llmRequest, in: {message: "two {{ run.inputs.q }}", context: "{{ c2.context }}"}}
  both: {type: template, in: {x: "{{ a.text }} {{ b.text }}"}, with: {text: "{{ inputs.x }}"}}
  pick: {type: decision, after: both, with: {expr: "size(run.inputs.q) > 3 ? 'long' : 'short'", branches: [long, short]}}
  end: {type: llmRequest, after: pick.long, in: {message: "{{ both.text }}"}}
outputs: {x: "{{ end.text }}"}
`,
		"agents": `
weir: 1
name: agents
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  work:
    type: loop
    with:
      max: 2
      until: "false"
      body:
        nodes:
          ask: {type: agent, in: {message: "{{ run.inputs.q }}", tools: [look]}}
          note: {type: llmRequest, in: {message: "note {{ ask.text }}"}}
        outputs: {text: "{{ note.text }}"}
  after: {type: llmRequest, after: work, in: {message: "so?"}}
outputs: {x: "{{ after.text }}"}
`,
		"fails": `
weir: 1
name: fails
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  a: {type: llmRequest, in: {message: "{{ run.inputs.q }} look", tools: [look]}}
  b: {type: llmRequest, retry: {attempts: 2, on: [model_filtered]}, in: {message: "break {{ a.text }}"}}
outputs: {x: "{{ b.text }}"}
`,
		"each": `
weir: 1
name: each
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  each:
    type: forEach
    in: {items: "{{ ['x', 'y'] }}"}
    with:
      concurrency: 2
      body:
        nodes:
          ask: {type: llmRequest, in: {message: "do {{ inputs.item }}"}}
        outputs: {text: "{{ ask.text }}"}
outputs: {x: "{{ each.results }}"}
`,
	}
}

func TestStoredTrajectoriesMatchJournals(t *testing.T) {
	for name, text := range trajectoryFlows() {
		t.Run(name, func(t *testing.T) {
			s := memoryTables()
			w := openLookingUp(t, weir.Options{Trajectories: &weir.TrajectoryOptions{Storage: s}})
			res := runOf(t, w, text, weir.Start{ID: name, Inputs: map[string]any{"q": "look here"}, User: "ann"})
			if name != "fails" && name != "agents" && res.Status != engine.Completed {
				t.Fatal(res.Status, res.Error)
			}
			checkStored(t, w, s, "ann", name)
		})
	}
}
