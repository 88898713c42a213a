package history_test

import (
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

// familyFlow is a flow whose children are worked on at the same time; theirs have one
// each, which asks two things at once. It passes the children's ids on in every way there is.
const familyFlow = `
weir: 1
name: family
inputs: {names: {type: list, default: [Ada, Bo, Cy, Di]}}
nodes:
  each:
    type: forEach
    in: {items: "{{ run.inputs.names }}"}
    with:
      concurrency: 4
      body:
        nodes:
          one: {type: flow, in: {name: "{{ inputs.item }}"}, with: {flow: middle}}
        outputs: {result: {line: "{{ one.line }}", id: "{{ one.run }}", deep: "{{ one.below }}"}}
  note:
    type: transform
    in: {all: "{{ each.results }}"}
    with: {expr: "'it was ' + inputs.all[0].id", state: {first: "inputs.all[0].id"}}
  say: {type: injectMessages, in: {messages: [{role: user, text: "{{ note.value }}"}]}}
outputs: {results: "{{ each.results }}", note: "{{ note.value }}"}
`

const middleFlow = `
weir: 1
name: middle
inputs: {name: {type: text, required: true}}
nodes:
  low: {type: flow, in: {name: "{{ run.inputs.name }}"}, with: {flow: low}}
outputs: {line: "{{ low.line }}", below: "{{ low.run }}"}
`

const lowFlow = `
weir: 1
name: low
inputs: {name: {type: text, required: true}}
nodes:
  one: {type: userInput, with: {prompt: "Your word?"}}
  two: {type: userInput, with: {prompt: "Another?"}}
  say: {type: template, in: {a: "{{ one.text }}", b: "{{ two.text }}"}, with: {text: "{{ inputs.a }} {{ inputs.b }} {{ run.inputs.name }}"}}
outputs: {line: "{{ say.text }}"}
`

func TestDiffIgnoresChildIDsAndParallelOrder(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{Parallel: 4})
	l, err := w.Parse("low", []byte(lowFlow))
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.Parse("middle", []byte(middleFlow), l)
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("family", []byte(familyFlow), m)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.AnswerAll(t, w, run); r.Status != engine.Completed {
		t.Fatal(r.Error)
	}
	for range 5 {
		again, err := w.Rerun(t.Context(), "first", weir.Start{})
		if err != nil {
			t.Fatal(err)
		}
		weirkit.AnswerAll(t, w, again)
		if d, err := w.Diff(t.Context(), "first", again.ID); err != nil || !d.Same {
			t.Fatalf("%+v %v", d, err)
		}
	}
	other, err := w.Rerun(t.Context(), "first", weir.Start{Inputs: map[string]any{"names": []any{"Ada", "Bo", "Cy", "Ed"}}})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.AnswerAll(t, w, other)
	d, err := w.Diff(t.Context(), "first", other.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d.Same || len(d.Inputs) != 1 || len(d.Outputs) != 1 || len(d.State)+len(d.Contexts) > 0 || d.First == nil ||
		d.First.A.Kind() != "run.started" || d.First.B.Kind() != "run.started" {
		t.Errorf("%+v", d)
	}
}
