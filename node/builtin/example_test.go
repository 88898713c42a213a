package builtin_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
	"github.com/weir-run/weir/weirtest"
)

func open(t *testing.T, o weir.Options) *weir.Weir {
	t.Helper()
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

// play runs a flow to its end, answering its questions by node path.
func play(t *testing.T, o weir.Options, text string, inputs, answers map[string]any) weir.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := open(t, o)
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: "run", Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := run.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != engine.Paused {
			return r
		}
		for _, i := range r.Interrupts {
			path := i.ID[:strings.LastIndex(i.ID, ":")]
			answer, ok := answers[path]
			if !ok {
				t.Fatalf("there is no answer for %s (%s)", path, i.Prompt)
			}
			if err := run.Answer(ctx, i.ID, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEveryExampleProducesItsStatedResult(t *testing.T) {
	for _, s := range builtin.Catalogue().Specs() {
		for _, e := range s.Examples {
			t.Run(s.Name+"/"+e.Name, func(t *testing.T) { checkExample(t, e) })
		}
	}
}

func checkExample(t *testing.T, e flow.Example) {
	t.Helper()
	r := weirtest.Flow(t, e.Flow, weirtest.Case{Tools: exampleTools(t, e), User: e.User, Executors: []sandbox.Executor{python.New(python.Options{})}, Files: e.Files, In: e.Inputs, Answers: e.Answers, Script: weirtest.Says(e.Script...)})
	if r.Error != nil && r.Error.Code == engine.CodeSandboxUnavailable && e.Error != r.Error.Code {
		t.Skip(r.Error)
	}
	if e.Error != "" {
		if r.Error == nil || r.Error.Code != e.Error {
			t.Fatalf("the run %s with %v, expected the error %s", r.Status, r.Error, e.Error)
		}
		return
	}
	if r.Status != engine.Completed {
		t.Fatalf("the run %s, waits for %v: %v", r.Status, r.Waiting, r.Error)
	}
	want, err := engine.Normalize(e.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	if got := any(r.Outputs); !reflect.DeepEqual(got, want) {
		t.Errorf("outputs %v, expected %v", got, want)
	}
}

// exampleTools returns the tools that an example runs with.
func exampleTools(t *testing.T, e flow.Example) []*tool.Tool {
	t.Helper()
	tools, err := memorytool.Tools(memory.New(), memorytool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, result := range e.Tools {
		tools = append(tools, &tool.Tool{
			Name: name, ReadOnly: true, Parameters: map[string]any{"type": "object"},
			Call: func(context.Context, tool.Call) (string, error) { return node.TextOf(result), nil },
		})
	}
	return tools
}

// mustFail returns the error a run ended with.
func mustFail(t *testing.T, r weir.Result) *engine.Error {
	t.Helper()
	var e *engine.Error
	if r.Error == nil || !errors.As(r.Error, &e) {
		t.Fatalf("the run %s with outputs %v, expected an error", r.Status, r.Outputs)
	}
	return e
}
