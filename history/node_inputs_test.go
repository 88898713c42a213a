package history_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/memory"
)

// manyInputs has each way to write an input: nothing, a literal, an edge, a reference to run inputs, to an item and to
// state, a text with a reference, an expression, and an expression that fails now. The reference without a value fails
// the run, and runs last.
const manyInputs = `
weir: 1
name: rec
state: {word: {initial: ahoy}}
inputs: {who: {type: text, required: true}, extra: {type: text}}
nodes:
  a: {type: shout, in: {text: hey}}
  none: {type: shout, after: a}
  edge: {type: shout, in: {text: "{{ a.text }}"}}
  given: {type: shout, in: {text: "{{ run.inputs.who }}"}}
  absent: {type: shout, after: fails, in: {text: "{{ run.inputs.extra }}"}}
  kept: {type: shout, in: {text: "{{ state.word }}"}}
  text: {type: shout, in: {text: "I am {{ run.inputs.who }}"}}
  once: {type: shout, in: {text: "{{ uuid(1) }}"}}
  fails: {type: shout, after: [none, edge, given, kept, text, once, each], onError: {value: ""}, in: {text: "{{ run.inputs.who[7] }}"}}
  each:
    type: forEach
    in: {items: [x]}
    with:
      body:
        nodes: {item: {type: shout, in: {text: "{{ inputs.item }}"}}}
        outputs: {r: "{{ item.text }}"}
outputs: {said: "{{ a.text }}"}
`

func TestInputsOfANodeAreThoseThatItWasGiven(t *testing.T) {
	t.Parallel()
	st := memory.New()
	w := weirkit.Open(t, weir.Options{Store: st, Types: recordTypes(t, 1, false)})
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, manyInputs), weir.Start{ID: "r", Inputs: map[string]any{"who": "Bo"}})
	if err != nil {
		t.Fatal(err)
	}
	endsAt(t, run, "absent")
	other := weirkit.Open(t, weir.Options{Store: st})
	for path, want := range map[string]struct{ value, template, computed any }{
		"a": {value: "hey"}, "none": {}, "edge": {value: "hey!"}, "given": {value: "Bo"}, "kept": {value: "ahoy"}, "absent": {},
		"text": {template: "I am {{ run.inputs.who }}", computed: "I am Bo"}, "once": {template: "{{ uuid(1) }}", computed: saidOf(t, w, "once")},
		"fails": {template: "{{ run.inputs.who[7] }}"}, "each#1/item": {value: "x"},
	} {
		for name, reader := range map[string]*weir.Weir{"with the types": w, "without": other} {
			v, err := reader.Inspect(t.Context(), "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			n := history.NewTimeline(v).Nodes[path]
			if n == nil {
				t.Errorf("%s: there is no node: %v", path, history.NewTimeline(v).Order)
				continue
			}
			in, err := history.NodeInputs(t.Context(), reader, "r", n)
			if err != nil {
				t.Errorf("%s, %s: %v", path, name, err)
			}
			got := [3]any{only(t, in.Values), only(t, in.Templates), only(t, in.Computed)}
			if !reflect.DeepEqual(got, [3]any{want.value, want.template, want.computed}) {
				t.Errorf("%s, %s: value, template and computed value are %v, want %v", path, name, got, want)
			}
		}
	}
}

// saidOf returns what a node of the type shout was given.
func saidOf(t *testing.T, w *weir.Weir, node string) any {
	t.Helper()
	v, err := w.Inspect(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := history.NewTimeline(v).Nodes[node].Outputs.Get("text")
	text, _ := said.(string)
	return strings.TrimSuffix(text, "!")
}

// endsAt waits for a run that a node fails.
func endsAt(t *testing.T, run *weir.Run, node string) {
	t.Helper()
	if r := weirkit.Wait(t, run); r.Error == nil || r.Error.Node != node {
		t.Fatalf("the run ended with %v, expected the failure of %s", r.Error, node)
	}
}

// only returns the value of the one port, nil if there is none.
func only(t *testing.T, list engine.Values) any {
	t.Helper()
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 || list[0].Name != "text" {
		t.Errorf("the ports are %v", list)
	}
	return list[0].Value
}
