package session_test

import (
	"errors"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

const reuseFlow = `
weir: 1
name: talk
context: {model: echo/m}
inputs: {message: {type: text, required: true}, tone: {type: text, default: plain}}
nodes: {say: {type: llmRequest, in: {message: "{{ run.inputs.message }}, {{ run.inputs.tone }}"}}}
outputs: {said: "{{ say.text }}"}
`

// A message under a known id is that message, in the queue and after it was answered, or it is refused.
func TestMessageUnderAKnownIDWithAnotherContentIsRefused(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, reuseFlow)
		s := weirkit.OpenSession(t, w, f)
		given := weir.SendOptions{ID: "m1", Inputs: map[string]any{"tone": "kind"}}
		for _, phase := range []string{"queued", "answered"} {
			if _, err := s.Enqueue(t.Context(), "one", given); err != nil {
				t.Fatalf("%s: the same message: %v", phase, err)
			}
			for what, try := range map[string]func() error{
				"text":  func() error { _, err := s.Send(t.Context(), "other", given); return err },
				"queue": func() error { _, err := s.Enqueue(t.Context(), "other", given); return err },
				"inputs": func() error {
					_, err := s.Send(t.Context(), "one", weir.SendOptions{ID: "m1", Inputs: map[string]any{"tone": "stern"}})
					return err
				},
				"none": func() error { _, err := s.Send(t.Context(), "one", weir.SendOptions{ID: "m1"}); return err },
				"forked": func() error {
					_, err := s.Send(t.Context(), "other", weir.SendOptions{ID: "m1", Inputs: given.Inputs, Busy: "fork"})
					return err
				},
			} {
				if e, ok := errors.AsType[*engine.Error](try()); !ok || e.Code != engine.CodeRequestReused {
					t.Errorf("%s, %s: %v", phase, what, e)
				}
			}
			if st := weirkit.SendAndWait(t, s, "one", given); st.Round != 1 || st.Text != "1: one, kind" {
				t.Errorf("%s: %+v", phase, st)
			}
		}
		if info, err := s.Info(t.Context()); err != nil || info.Rounds != 1 || info.Queued != 0 {
			t.Error(info, err)
		}
	})
}
