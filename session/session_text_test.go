package session_test

import (
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
)

func TestOutputIsTextOfRoundWithoutModel(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, `
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
	if state := weirkit.SendAndWait(t, s, "hello", weir.SendOptions{}); state.Text != "echo hello" {
		t.Errorf("the text is %q", state.Text)
	}
}
