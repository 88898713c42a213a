package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/sandbox"
)

// namedExecutor is offered and never used: the runs wait before their code.
type namedExecutor struct {
	sandbox.Executor
	name, language string
}

func (e namedExecutor) Name() string                { return e.name }
func (e namedExecutor) Language() string            { return e.language }
func (e namedExecutor) Probe(context.Context) error { return nil }

// A run that waits names the executors that its code needs and that a process does not offer, wherever the code stands.
func TestMissingNamesTheExecutorsOfCode(t *testing.T) {
	t.Parallel()
	mine, lua := namedExecutor{name: "mine", language: "python"}, namedExecutor{name: "other", language: "lua"}
	for name, c := range map[string]struct{ node, want string }{
		"by default":        {`{type: action, after: ask, with: {code: "x"}}`, "an executor for python"},
		"by language":       {`{type: action, after: ask, with: {code: "x", language: lua}}`, "an executor for lua"},
		"by name":           {`{type: action, after: ask, with: {code: "x", executor: mine}}`, "the executor mine"},
		"of an agent":       {`{type: action, after: ask, with: {prompt: "do it"}, context: main}`, "an executor for python"},
		"of a decision":     {`{type: decision, after: ask, with: {code: "x", branches: [a, b]}}`, "an executor for python"},
		"in a body":         {`{type: loop, after: ask, with: {max: 2, body: {nodes: {c: {type: action, with: {code: "x", executor: mine}}}}}}`, "the executor mine"},
		"of an expression":  {`{type: decision, after: ask, with: {expr: "'a'", branches: [a, b]}}`, ""},
		"of nothing at all": {`{type: template, after: ask, with: {text: "code"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			none := weirkit.Open(t, weir.Options{})
			offering := weirkit.Open(t, weir.Options{Executors: []sandbox.Executor{mine, lua}})
			for _, w := range []*weir.Weir{none, offering} {
				f := weirkit.Parse(t, w, "weir: 1\nname: x\ncontext: {model: p/m}\nnodes:\n  ask: {type: userInput, with: {prompt: Go?}}\n  n: "+c.node+"\n")
				run, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
				if err != nil {
					t.Fatal(err)
				}
				if r := weirkit.Wait(t, run); r.Status != weir.Paused {
					t.Fatal(r.Status, r.Error)
				}
				what, err := w.Missing(t.Context(), "r")
				got := strings.Contains(strings.Join(what, "; "), "executor")
				if want := w == none && c.want != ""; err != nil || got != want || want && !strings.Contains(strings.Join(what, "; "), c.want+" is not offered") {
					t.Errorf("missing: %q, want %q: %v", what, c.want, err)
				}
			}
		})
	}
}
