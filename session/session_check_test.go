package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

func checkInputError(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != engine.CodeInput || e.Hint == "" {
		t.Errorf("%q: %v, want an error of code %s with a hint", what, err, engine.CodeInput)
	}
}

func TestEmptyMessageIsRefusedWithoutARound(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	for _, m := range []any{"", "  \n\t", "\u200b", nil, convo.Message{Role: convo.User, Text: " "}, []any{}} {
		_, err := s.Send(t.Context(), m, weir.SendOptions{})
		checkInputError(t, strings.ToValidUTF8(plainOf(m), "?"), err)
	}
	row, err := s.Info(t.Context())
	if err != nil || row.Rounds != 0 || row.Queued != 0 || row.Length != 0 {
		t.Errorf("%+v %v", row, err)
	}
	if state := weirkit.SendAndWait(t, s, " a ", weir.SendOptions{}); state.Text != "1:  a " {
		t.Errorf("blanks around what is said stay: %q", state.Text)
	}
}

func plainOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return "no text"
}

func TestAnswerMayBeEmpty(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, `
weir: 1
name: asks
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Anything else?"}}
outputs: {more: "{{ ask.text }}"}
`)
	s := weirkit.OpenSession(t, w, f)
	if state := weirkit.SendAndWait(t, s, "Hello.", weir.SendOptions{}); state.Status != engine.Paused {
		t.Fatalf("%+v", state)
	}
	if state := weirkit.SendAndWait(t, s, "", weir.SendOptions{}); state.Status != engine.Completed {
		t.Errorf("%+v", state)
	}
}

func TestSessionNamesFitOnALine(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	for _, name := range []string{"a\nb", "a\x1b[2J", "\u202eb", " a", "a\xff", strings.Repeat("a", 201)} {
		_, err := w.Session(t.Context(), f, weir.SessionOptions{User: name})
		checkInputError(t, "user "+name, err)
		_, err = w.Session(t.Context(), f, weir.SessionOptions{Thread: name})
		checkInputError(t, "thread "+name, err)
		_, err = w.Session(t.Context(), f, weir.SessionOptions{ID: name, New: true})
		checkInputError(t, "id "+name, err)
	}
	if _, err := w.Session(t.Context(), f, weir.SessionOptions{User: "Ada L. 🦊", Thread: "ärger mit Jonas"}); err != nil {
		t.Error(err)
	}
}

func TestRunNamesFitOnALine(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	in := map[string]any{"message": "Hello."}
	_, err := w.Start(t.Context(), f, weir.Start{ID: "a\nb", Inputs: in})
	checkInputError(t, "run id", err)
	_, err = w.Start(t.Context(), f, weir.Start{User: "a\tb", Inputs: in})
	checkInputError(t, "user", err)
	run, err := w.Start(t.Context(), f, weir.Start{ID: "my run", Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = w.Rerun(t.Context(), run.ID, weir.Start{ID: "a\rb"})
	checkInputError(t, "id of a rerun", err)
	_, err = w.PlanFork(t.Context(), run.ID, weir.ForkOptions{ID: "\x7f", From: "answer"})
	checkInputError(t, "id of a fork", err)
}
