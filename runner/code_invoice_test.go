package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
)

// stepTable returns what a chain of work shows of a run's steps: node, number, name,
// attempt, status.
func stepTable(t *testing.T, w *weir.Weir, run string) []string {
	t.Helper()
	v, err := w.Inspect(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if s, ok := e.(*engine.StepRecorded); ok {
				out = append(out, fmt.Sprintf("%s %d %s %d %s", s.Path, s.Number, s.Name, s.Attempt, s.Status))
			}
		}
	}
	return out
}

// withPython returns a Weir that runs code, over a store of its own.
func withPython(t *testing.T, o weir.Options) *weir.Weir {
	t.Helper()
	x := isolatedPython(t)
	o.Executors = []sandbox.Executor{x}
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// writtenCode returns the steps of the invoice flow whose code models write: the first
// program for extract fails.
func writtenCode() []string {
	return []string{
		"extract 1 input_analysis 1 success",
		"extract 2 data_analysis 1 success",
		"extract 3 code_generation 1 success",
		"extract 4 code_validation 1 success",
		"extract 5 execution 1 failed",
		"extract 3 code_generation 2 success",
		"extract 4 code_validation 2 success",
		"extract 5 execution 2 success",
		"extract 6 output_validation 2 success",
		"large 1 input_analysis 1 success",
		"large 2 data_analysis 1 skipped",
		"large 3 code_generation 1 success",
		"large 4 code_validation 1 success",
		"large 5 execution 1 success",
		"large 6 output_validation 1 success",
	}
}

// runApproved runs a flow, whose one question is answered.
func runApproved(t *testing.T, w *weir.Weir, f *weir.Flow, start weir.Start) weir.Result {
	t.Helper()
	run, err := w.Start(t.Context(), f, start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err == nil && r.Status == engine.Paused && len(r.Interrupts) == 1 {
		if err = run.Answer(t.Context(), r.Interrupts[0].ID, "approve"); err == nil {
			r, err = run.Wait(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInvoiceFlowTakesDocumentedSteps(t *testing.T) {
	script, err := filepath.Abs("../examples/invoice/written.script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]any{"text": "Paper Ltd, 5 boxes. Total: 50.00 EUR"}
	pdf := map[string]any{"pdf": map[string]any{"path": "invoice.pdf"}}
	byCode := []string{"extract 5 execution 1 success", "validate 5 execution 1 success", "large 5 execution 1 success"}
	for _, c := range []struct {
		name, file, large string
		inputs            map[string]any
		steps             []string
	}{
		{"code, from text", "code.yaml", "false", text, byCode},
		{"code, from a PDF", "code.yaml", "true", pdf, byCode},
		{"models, from text", "written.yaml", "false", text, writtenCode()},
		{"models, from a PDF", "written.yaml", "true", pdf, writtenCode()},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := withPython(t, weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScriptFiles()}})
			f, err := w.Load(filepath.Join("../examples/invoice", c.file))
			if err != nil {
				t.Fatal(err)
			}
			r := runApproved(t, w, f, weir.Start{ID: "invoice", Inputs: c.inputs, Model: "script/" + script})
			if large, _ := r.Outputs.Get("large"); r.Status != engine.Completed || large != c.large {
				t.Fatalf("the run %s with %v, %v", r.Status, r.Outputs, r.Error)
			}
			if got := stepTable(t, w, "invoice"); !slices.Equal(got, c.steps) {
				t.Errorf("the steps are\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(c.steps, "\n"))
			}
		})
	}
}
