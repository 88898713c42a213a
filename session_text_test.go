package weir_test

import (
	"testing"

	"github.com/weir-run/weir"
)

func TestOutputIsTextOfRoundWithoutModel(t *testing.T) {
	t.Parallel()
	w, f := openTalk(t, "", &repeatingModel{}, `
weir: 1
name: echo
inputs: {message: {type: text, required: true}}
nodes:
  back: {type: template, in: {m: "{{ run.inputs.message }}"}, with: {text: "echo {{ inputs.m }}"}}
outputs: {answer: "{{ back.text }}"}
`)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if state := sendAndWait(t, s, "hello", weir.SendOptions{}); state.Text != "echo hello" {
		t.Errorf("the text is %q", state.Text)
	}
}
