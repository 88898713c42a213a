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
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

func TestNamedToolsAreFoundInEverySetting(t *testing.T) {
	t.Parallel()
	w := openMetered(t, &countingModel{}, nil)
	for nodes, want := range map[string]string{
		`{a: {type: agent, in: {message: "Go.", tools: [look, "mcp:files/read"]}}}`:                                                              "look mcp:files/read",
		`{p: {type: tools, with: {tools: [b, a]}}, a: {type: llmRequest, in: {message: "Go.", tools: ["{{ p.tools }}", c]}}}`:                    "a b c",
		`{p: {type: tools}, a: {type: llmRequest, in: {message: "Go.", tools: "{{ p.tools }}"}}}`:                                                "and all",
		`{p: {type: tools, with: {tools: auto}}}`:                                                                                                "and all",
		`{l: {type: loop, with: {max: 1, until: "true", body: {nodes: {a: {type: agent, in: {message: "Go.", tools: [inner]}}}, outputs: {}}}}}`: "inner",
		`{a: {type: agent, in: {message: "Go.", tools: [look]}, with: {pre: [{tool: lock}], post: [Say it., {tool: unlock}]}}}`:                  "lock look unlock",
		`{a: {type: llmRequest, in: {message: "Go."}}}`:                                                                                          "",
	} {
		f, err := w.Parse("flow.yaml", []byte("weir: 1\nname: f\ncontext: {model: meter/m}\nnodes: "+nodes+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		names, all := runner.ToolNames(&f.Graph)
		got := strings.Join(names, " ")
		if all {
			got += "and all"
		}
		if got != want {
			t.Errorf("%s names %q, want %q", nodes, got, want)
		}
	}
}

// waitingFlow has a person asked, and then a model that may call look.
const waitingFlow = `
weir: 1
name: waiting
context: {model: m/m}
nodes:
  wait: {type: userInput, with: {prompt: "Go on?"}}
  pick: {type: tools, after: wait%s}
  say: {type: llmRequest, in: {message: "Go.", tools: "{{ pick.tools }}"}}
outputs: {text: "{{ say.text }}"}
`

func TestRunDoesNotContinueWithChangedTools(t *testing.T) {
	t.Parallel()
	look := func(says string) *weir.Tool {
		return &weir.Tool{Name: "look", Description: says, ReadOnly: true, Call: emptyTool}
	}
	other := &weir.Tool{Name: "other", Description: "Another.", Call: emptyTool}
	for name, c := range map[string]struct {
		pick   string
		then   []*weir.Tool
		refuse string // what the error says
	}{
		"the same":              {"", []*weir.Tool{look("Looks."), other}, ""},
		"one more":              {"", []*weir.Tool{look("Looks."), other, {Name: "third", Call: emptyTool}}, ""},
		"one changed of all":    {"", []*weir.Tool{look("Looks twice."), other}, "the tool look is defined otherwise"},
		"one gone of all":       {"", []*weir.Tool{other}, "the tool look is no longer offered"},
		"one changed, unnamed":  {", with: {tools: [other]}", []*weir.Tool{look("Looks twice."), other}, ""},
		"one changed, named":    {", with: {tools: [look]}", []*weir.Tool{look("Looks twice."), other}, "the tool look is defined otherwise"},
		"both changed and gone": {"", []*weir.Tool{look("Looks twice.")}, "the tool look is defined otherwise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weir.db")
			w := openWithTools(t, path, []*weir.Tool{look("Looks."), other})
			r := weirkit.Wait(t, weirkit.StartText(t, w, strings.Replace(waitingFlow, "%s", c.pick, 1)))
			if err := w.Close(t.Context()); err != nil || r.Status != engine.Paused {
				t.Fatal(r.Status, err)
			}
			w = openWithTools(t, path, c.then)
			t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
			_, err := w.Answer(t.Context(), "run", r.Interrupts[0].ID, "yes", "ann")
			if c.refuse == "" && err != nil {
				t.Fatal(err)
			}
			if c.refuse != "" {
				if !errors.Is(err, runner.ErrDependenciesChanged) || !strings.Contains(err.Error(), c.refuse) {
					t.Fatalf("the answer gave %v", err)
				}
				checkOnlyCancellable(t, w)
			}
		})
	}
}

// openWithTools returns a Weir over a file, whose model calls the tool look.
func openWithTools(t *testing.T, path string, tools []*weir.Tool) *weir.Weir {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Tools: tools, Providers: map[string]weir.Provider{"m": toolCallingModel{"look", "{}"}}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// checkOnlyCancellable checks what can be done with a run whose tools have changed.
func checkOnlyCancellable(t *testing.T, w *weir.Weir) {
	t.Helper()
	if _, err := w.Resume(t.Context(), "run"); !errors.Is(err, runner.ErrDependenciesChanged) {
		t.Errorf("resuming gave %v", err)
	}
	if v, err := w.Inspect(t.Context(), "run", 0); err != nil || v.Run.Status() != engine.Paused {
		t.Errorf("looking at it gave %v", err)
	}
	run, err := w.Cancel(t.Context(), "run", "ann", "")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Cancelled {
		t.Errorf("the run is %s", r.Status)
	}
	if _, err := w.Resume(t.Context(), "run"); err != nil {
		t.Errorf("what is over is no matter: %v", err)
	}
}

func emptyTool(context.Context, tool.Call) (string, error) { return "", nil }
