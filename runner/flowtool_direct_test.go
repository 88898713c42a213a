package runner_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// namingModel answers with the name of the model that was called.
type namingModel struct{}

func (namingModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: req.Model}, Usage: llm.Usage{Input: 7, Output: 1}}, nil
}

// directly is a flow whose node calls the tool inner.
const directly = `
weir: 1
name: outer
context: {model: m/outer}
inputs: {n: {type: any, default: 1}}
nodes:
  call: {type: tool, in: {n: "{{ run.inputs.n }}"}, with: {tool: inner}}
outputs: {text: "{{ call.text }}", value: "{{ call.value }}"}
`

// flowTools opens a process that offers a flow as the tool inner.
func flowTools(t *testing.T, s store.Store, inner string, change func(*weir.FlowTool)) *weir.Weir {
	t.Helper()
	f := weirkit.Parse(t, weirkit.Open(t, weir.Options{}), "weir: 1\nname: inner\n"+inner)
	ft := weir.FlowTool{Flow: f}
	if change != nil {
		change(&ft)
	}
	return weirkit.Open(t, weir.Options{Store: s, Flows: []weir.FlowTool{ft}, Providers: map[string]weir.Provider{"m": namingModel{}}})
}

func TestAToolNodeRunsTheFlowOfAToolAsItsChild(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inner       string
		change      func(*weir.FlowTool)
		text, error string
	}{
		"its outputs":    {inner: `inputs: {n: {type: number}}` + "\n" + `nodes: {a: {type: transform, with: {expr: run.inputs.n * 2}}}` + "\n" + `outputs: {twice: "{{ a.value }}"}`, text: `{"twice":2}`},
		"a single text":  {inner: `inputs: {n: {type: any}}` + "\n" + `nodes: {a: {type: template, with: {text: "n {{ run.inputs.n }}"}}}` + "\n" + `outputs: {t: "{{ a.text }}"}`, text: "n 1"},
		"cut":            {inner: `inputs: {n: {type: any}}` + "\n" + `nodes: {a: {type: template, with: {text: "` + strings.Repeat("long ", 90) + `"}}}` + "\n" + `outputs: {t: "{{ a.text }}"}`, change: func(f *weir.FlowTool) { f.MaxOutput = 60 }, text: "bytes are left out here"},
		"a failure":      {inner: `inputs: {n: {type: any}}` + "\n" + `nodes: {a: {type: fail, with: {message: Not today., code: out_of_luck}}}`, error: "out_of_luck"},
		"a wrong input":  {inner: `inputs: {n: {type: text}}` + "\n" + `nodes: {a: {type: template, with: {text: x}}}`, error: engine.CodeInput},
		"caller's model": {inner: `inputs: {n: {type: any}}` + "\n" + `nodes: {a: {type: llmRequest, in: {message: Go}}}` + "\n" + `outputs: {t: "{{ a.text }}"}`, text: "outer"},
		"its own model": {
			inner:  `inputs: {n: {type: any}}` + "\n" + `context: {model: m/own}` + "\n" + `nodes: {a: {type: llmRequest, in: {message: Go}}}` + "\n" + `outputs: {t: "{{ a.text }}"}`,
			change: func(f *weir.FlowTool) { f.Model = "m/replaced" }, text: "replaced",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := flowTools(t, nil, c.inner, c.change)
			r := weirkit.Wait(t, weirkit.StartText(t, w, directly))
			text, _ := weir.Output[string](r, "text")
			if c.error == "" && (r.Status != engine.Completed || !strings.Contains(text, c.text)) || c.error != "" && (r.Error == nil || r.Error.Code != c.error) {
				t.Fatalf("%s %q, %v", r.Status, text, r.Error)
			}
			runs, err := w.Runs(t.Context(), store.Filter{Parent: r.Run})
			if err != nil || c.error != engine.CodeInput && len(runs) != 1 {
				t.Errorf("%d child runs, %v", len(runs), err)
			}
			if strings.Contains(name, "model") && r.Usage.Calls != 1 {
				t.Errorf("the usage is %+v", r.Usage)
			}
		})
	}
}

func TestAQuestionOfAFlowThatAToolNodeCallsIsAnsweredInAnotherProcess(t *testing.T) {
	t.Parallel()
	const inner = `
inputs: {n: {type: any}}
nodes: {who: {type: userInput, with: {prompt: "Who?"}}}
outputs: {t: "{{ who.text }}"}
`
	path := filepath.Join(t.TempDir(), "weir.db")
	process := func(do func(w *weir.Weir) *weir.Run) weir.Result {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := flowTools(t, s, inner, func(f *weir.FlowTool) { f.Approve = tool.ApproveAlways })
		r := weirkit.Wait(t, do(w))
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := process(func(w *weir.Weir) *weir.Run { return weirkit.StartText(t, w, directly) })
	for i, answer := range []string{"approve", "Ada"} {
		if r.Status != engine.Paused || len(r.Interrupts) != 1 || i == 1 && !strings.HasPrefix(r.Interrupts[0].ID, "call:tool1#1>who:") {
			t.Fatalf("%s %+v %v", r.Status, r.Interrupts, r.Error)
		}
		r = process(func(w *weir.Weir) *weir.Run {
			run, err := w.Answer(t.Context(), r.Run, r.Interrupts[0].ID, answer, "ann")
			if err != nil {
				t.Fatal(err)
			}
			return run
		})
	}
	if text, _ := weir.Output[string](r, "text"); r.Status != engine.Completed || text != "Ada" {
		t.Errorf("%s %q %v", r.Status, text, r.Error)
	}
}

func TestAFlowToolThatActsOutsideIsRefusedInARace(t *testing.T) {
	t.Parallel()
	const race = `
weir: 1
name: outer
nodes:
  fast:
    type: race
    with:
      branches:
        a: {nodes: {call: {type: tool, with: {tool: inner}}}, outputs: {t: "{{ call.text }}"}}
        b: {nodes: {say: {type: template, with: {text: b}}}, outputs: {t: "{{ say.text }}"}}
`
	for inner, says := range map[string]string{
		`nodes: {a: {type: template, with: {text: x}}}`:                                                   "",
		`nodes: {send: {type: httpRequest, with: {method: POST, url: "https://example.com", body: "x"}}}`: "whose node send may act outside",
	} {
		w := flowTools(t, nil, inner, nil)
		_, err := w.Start(t.Context(), weirkit.Parse(t, w, race), weir.Start{})
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", inner, err)
		}
	}
}
