package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

// toolCallingModel calls the tool with the arguments, and then repeats the result.
type toolCallingModel struct{ tool, arguments string }

func (c toolCallingModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	last := req.Messages[len(req.Messages)-1]
	m := convo.Message{Role: convo.Assistant, Text: fmt.Sprintf("%v: %s", last.Failed, last.Text)}
	if last.Role == convo.User {
		m = convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: c.tool, Arguments: c.arguments}}}
	}
	return &llm.Response{Message: m}, nil
}

func TestFlowIsCalledAsTool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ flow, arguments, want string }{
		"its outputs": {`
inputs: {n: {type: number, required: true, description: What to double.}}
nodes: {twice: {type: transform, with: {expr: "run.inputs.n * 2"}}}
outputs: {twice: "{{ twice.value }}"}`, `{"n": 21}`, `false: {"twice":42}`},
		"a missing argument": {`
inputs: {n: {type: number, required: true}}
nodes: {twice: {type: transform, with: {expr: "run.inputs.n * 2"}}}
outputs: {twice: "{{ twice.value }}"}`, `{}`, `true: `},
		"a failure": {`
nodes: {no: {type: fail, with: {message: "Not today."}}}
outputs: {}`, `{}`, "Not today."},
		"itself without end": {`
context: {model: m/m}
nodes:
  pick: {type: tools}
  say: {type: llmRequest, in: {message: "Again.", tools: "{{ pick.tools }}"}}
outputs: {text: "{{ say.text }}"}`, `{}`, "8 is the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "inner.yaml")
			if err := os.WriteFile(file, []byte("weir: 1\nname: inner\ndescription: Helps.\n"+c.flow), 0o600); err != nil {
				t.Fatal(err)
			}
			w, err := weir.Open(weir.Options{
				Providers: map[string]weir.Provider{"m": toolCallingModel{"inner", c.arguments}},
				Flows:     []weir.FlowTool{{File: file}},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
			r := weirkit.Wait(t, weirkit.StartText(t, w, `
weir: 1
name: outer
context: {model: m/m}
nodes:
  pick: {type: tools}
  say: {type: llmRequest, in: {message: "Go.", tools: "{{ pick.tools }}"}}
outputs: {text: "{{ say.text }}"}
`))
			if got, _ := weir.Output[string](r, "text"); r.Status != engine.Completed || !strings.Contains(got, c.want) {
				t.Errorf("%s %v: told %q, want %q", r.Status, r.Error, got, c.want)
			}
			runs, err := w.Runs(t.Context(), store.Filter{})
			if err != nil || name == "its outputs" && len(runs) != 2 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
		})
	}
}

func TestFlowToolSharesNothingWithItsCaller(t *testing.T) {
	f := weirkit.Parse(t, weirkit.Open(t, weir.Options{}), "weir: 1\nname: helper\nnodes: {a: {type: template, with: {text: a}}}\n")
	for _, isolation := range []string{"share", "fork"} {
		_, err := weir.Open(weir.Options{Flows: []weir.FlowTool{{Flow: f, Isolation: isolation}}})
		if err == nil || !strings.Contains(err.Error(), "isolation: "+isolation) {
			t.Errorf("a tool with isolation %s: %v", isolation, err)
		}
	}
	weirkit.Open(t, weir.Options{Flows: []weir.FlowTool{{Flow: f, Isolation: "fresh"}}})
}
