package flow_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/flow/graph"
	"github.com/weir-run/weir/internal/weirkit"
)

// template returns the template that reads a member of a root name.
func template(root string, path ...string) string { return "{{ " + expr.Join(root, path...) + " }}" }

// childWithNames is a flow whose input and output have a name; it asks a question in between.
func childWithNames(name string) object {
	return object{
		"weir": 1, "name": "child", "inputs": object{name: object{"type": "text", "required": true}},
		"nodes": object{
			"ask": object{"type": "userInput", "with": object{"prompt": "{{ run.inputs[" + expr.Quote(name) + "] }}"}},
			"fit": object{
				"type": "transform", "in": object{name: "{{ ask.text }}"},
				"with": object{"fields": object{name: expr.Join("inputs", name) + " + '!'"}},
			},
		},
		"outputs": object{name: template("fit", name)},
	}
}

// flowWithNames returns a flow in which everything that may have a name of any text has this one:
// inputs and outputs of the flow and of its child, ports, branches, fields, and outputs of a body.
func flowWithNames(t *testing.T, w *weir.Weir, name string) *weir.Flow {
	t.Helper()
	body := object{
		"nodes":   object{"x": object{"type": "template", "in": object{name: template("inputs", name)}, "with": object{"text": template("inputs", name)}}},
		"outputs": object{name: "{{ x.text }}"},
	}
	parent := object{
		"weir": 1, "name": "parent", "inputs": object{name: object{"type": "text"}},
		"nodes": object{
			"sub": object{"type": "flow", "in": object{name: template("run", "inputs", name)}, "with": object{"flow": "./child.json"}},
			"route": object{"type": "decision", "in": object{name: template("sub", name)}, "with": object{
				"expr": "size(" + expr.Join("inputs", name) + ") > 0 ? " + expr.Quote(name) + " : 'never'", "branches": []any{name, "never"},
			}},
			"yes":  object{"type": "template", "after": "route." + name, "in": object{name: template("route", name)}, "with": object{"text": "taken: " + template("inputs", name)}},
			"no":   object{"type": "template", "after": "route.never", "with": object{"text": "not taken"}},
			"each": object{"type": "forEach", "in": object{"items": []any{1, 2}, name: template("sub", name)}, "with": object{"body": body}},
			"keep": object{"type": "transform", "in": object{name: template("sub", name)}, "with": object{"state": object{name: expr.Join("inputs", name)}}},
			"last": object{"type": "transform", "after": "keep", "with": object{"expr": expr.Join("inputs", name) + " == " + expr.Join("state", name) + " ? " + expr.Join("state", name) + " : 'other'"}},
		},
		"edges": []any{object{"from": "sub." + name, "to": "last." + name}},
		"outputs": object{
			name: template("sub", name), name + "2": "{{ yes.text }}", "list": "{{ each.results.map(r, r[" + expr.Quote(name) + "]) }}",
			"absent": "{{ no.text }}", "seen": "{{ last.value }}",
		},
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	f, err := w.ParseIn(flow.MemFiles{"child.json": text(childWithNames(name))}, "parent.json", []byte(text(parent)))
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	return f
}

// A run with names of any text gives the same outputs on every store, after a restart, and in a
// fork; its record is verified, and its drawings and listings have the names.
func TestNamesMayBeAnyText(t *testing.T) {
	t.Parallel()
	for i, name := range []string{
		"my name", "a.b", "Größe (m²)", "日本語", "🙂", `say "hi"`, "it's", `back\slash`, "{{ x }}", "}}", "]", "1st", "true",
		"a->b", "a=b", "#1;", "|", "<b>", "`x`", " ", "a>b/c", "error ", "_", "\u202eabc",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			checkNames(t, name)
		})
	}
}

func checkNames(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	start := func(w *weir.Weir) *weir.Run {
		run, err := w.Start(t.Context(), flowWithNames(t, w, name), weir.Start{Inputs: object{name: "What is it?"}})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		return run
	}
	first, err := weir.Open(weir.Options{Store: weirkit.OpenSQLite(t, path)})
	if err != nil {
		t.Fatal(err)
	}
	run := start(first)
	if r := weirkit.Wait(t, run); r.Status != engine.Paused {
		t.Errorf("%q: the run is %s: %v", name, r.Status, r.Error)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, path)})
	want := object{name: "gold!", name + "2": "taken: true", "list": []any{"gold!", "gold!"}, "seen": "gold!"}
	again, err := w.Resume(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	checkOutputs(t, name, answerQuestion(t, w, again), want)
	checkRecord(t, w, run.ID, name)
	forked, _, err := w.Fork(t.Context(), run.ID, weir.ForkOptions{From: "route"})
	if err != nil {
		t.Fatal(err)
	}
	checkOutputs(t, name, weirkit.Wait(t, forked), want)
	memory := weirkit.Open(t, weir.Options{})
	checkOutputs(t, name, answerQuestion(t, memory, start(memory)), want)
}

func answerQuestion(t *testing.T, w *weir.Weir, run *weir.Run) weir.Result {
	t.Helper()
	r := weirkit.Wait(t, run)
	if len(r.Interrupts) != 1 || r.Interrupts[0].Prompt != "What is it?" {
		t.Fatalf("the questions are %+v: %v", r.Interrupts, r.Error)
	}
	run, err := w.Answer(t.Context(), run.ID, r.Interrupts[0].ID, "gold", "ada")
	if err != nil {
		t.Fatal(err)
	}
	return weirkit.Wait(t, run)
}

func checkOutputs(t *testing.T, name string, r weir.Result, want object) {
	t.Helper()
	got := object{}
	for _, o := range r.Outputs {
		got[o.Name] = o.Value
	}
	if r.Status != weir.Completed || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %s with %v, %v; want %v", name, r.Status, got, r.Error, want)
	}
}

// checkRecord reads the flow of a run, its drawings and its chain of work from the record.
func checkRecord(t *testing.T, w *weir.Weir, run, name string) {
	t.Helper()
	f, err := w.FlowOf(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for of, drawing := range map[string][]byte{"DOT": graph.DOT(f), "Mermaid": graph.Mermaid(f)} {
		edges := 0
		for line := range strings.Lines(string(drawing)) {
			if strings.Contains(line, " -> ") || strings.Contains(line, "--> ") || strings.Contains(line, "-.->") {
				edges++
			}
			if strings.Count(strings.ReplaceAll(line, `\"`, ""), `"`)%2 != 0 {
				t.Errorf("%q: a line of the drawing %s has an open quote: %s", name, of, line)
			}
		}
		if edges < 7 {
			t.Errorf("%q: the drawing %s has %d edges:\n%s", name, of, edges, drawing)
		}
	}
	rows, _ := weirkit.ChainRows(t, w, run)
	if len(rows) < 7 {
		t.Errorf("%q: the chain of work has %d rows", name, len(rows))
	}
	a, err := w.Diff(t.Context(), run, run)
	if err != nil || !a.Same {
		t.Errorf("%q: comparing the run with itself: %+v, %v", name, a, err)
	}
}
