package session_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/session"
)

const reuseFlow = `
weir: 1
name: talk
context: {model: echo/m}
inputs: {message: {type: text, required: true}, tone: {type: text, default: plain}}
nodes: {say: {type: llmRequest, in: {message: "{{ run.inputs.message }}, {{ run.inputs.tone }}"}}}
outputs: {said: "{{ say.text }}"}
`

// sendChanges are, by option, other messages than the one of sendGiven.
func sendChanges() map[string][]func(*weir.SendOptions) {
	temperature := 0.7
	return map[string][]func(*weir.SendOptions){
		"By": {func(o *weir.SendOptions) { o.By = "bert" }, func(o *weir.SendOptions) { o.By = "" }},
		"Inputs": {
			func(o *weir.SendOptions) { o.Inputs = nil },
			func(o *weir.SendOptions) { o.Inputs = map[string]any{"tone": "stern"} },
		},
		"Model": {func(o *weir.SendOptions) { o.Model = "" }, func(o *weir.SendOptions) { o.Model = "echo/third" }},
		"Settings": {
			func(o *weir.SendOptions) { o.Settings = session.RoundSettings{} },
			func(o *weir.SendOptions) { o.Settings.System = "Be long." },
			func(o *weir.SendOptions) { o.Settings.Temperature = &temperature },
		},
		"Seed": {
			func(o *weir.SendOptions) { o.Seed = nil },
			func(o *weir.SendOptions) { o.Seed = []convo.Message{{Role: convo.User, Text: "other"}} },
		},
	}
}

func sendGiven() weir.SendOptions {
	return weir.SendOptions{
		ID: "m1", By: "eve", Inputs: map[string]any{"tone": "kind"}, Model: "echo/other", Origin: "webhook:a",
		Settings: session.RoundSettings{System: "Be brief."}, Seed: []convo.Message{{Role: convo.User, Text: "before"}},
	}
}

// A message under a known id is that message, in the queue and after it was answered, or it is refused. Each option is
// compared, or stated not to be: what to do while a round runs, and the origin, may differ in an honest repetition.
func TestMessageUnderAKnownIDWithAnotherContentIsRefused(t *testing.T) {
	t.Parallel()
	changes := sendChanges()
	for f := range reflect.TypeFor[weir.SendOptions]().Fields() {
		if changes[f.Name] == nil && !slices.Contains([]string{"ID", "Busy", "Origin"}, f.Name) {
			t.Errorf("SendOptions.%s is neither compared nor stated not to be", f.Name)
		}
	}
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, reuseFlow)
		s := weirkit.OpenSession(t, w, f)
		for _, phase := range []string{"queued", "answered"} {
			if _, err := s.Enqueue(t.Context(), "one", sendGiven()); err != nil {
				t.Fatalf("%s: the same message: %v", phase, err)
			}
			checkSameMessage(t, s, phase)
			checkOtherMessages(t, s, phase, changes)
			if st := weirkit.SendAndWait(t, s, "one", sendGiven()); st.Round != 1 || st.Text != "2: one, kind" {
				t.Errorf("%s: %+v", phase, st)
			}
		}
		if info, err := s.Info(t.Context()); err != nil || info.Rounds != 1 || info.Queued != 0 {
			t.Error(info, err)
		}
	})
}

// checkSameMessage sends the message with what an honest repetition may change, and with another text.
func checkSameMessage(t *testing.T, s *weir.Session, phase string) {
	t.Helper()
	given := sendGiven()
	given.Origin = "webhook:b"
	for _, busy := range []string{"", "fork", "reject"} {
		given.Busy = busy
		if _, err := s.Enqueue(t.Context(), "one", given); err != nil {
			t.Errorf("%s: the same message, busy %q: %v", phase, busy, err)
		}
		_, err := s.Send(t.Context(), "other", given)
		checkReused(t, phase+", another text", err)
	}
}

func checkOtherMessages(t *testing.T, s *weir.Session, phase string, changes map[string][]func(*weir.SendOptions)) {
	t.Helper()
	for name, list := range changes {
		for i, change := range list {
			o := sendGiven()
			change(&o)
			_, err := s.Send(t.Context(), "one", o)
			checkReused(t, fmt.Sprintf("%s, another %s (%d)", phase, name, i), err)
			_, err = s.Enqueue(t.Context(), "one", o)
			checkReused(t, fmt.Sprintf("%s, another %s (%d), to the queue", phase, name, i), err)
		}
	}
}

func checkReused(t *testing.T, what string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeRequestReused {
		t.Errorf("%s: %v", what, err)
	}
}

const askNumber = `
weir: 1
name: count
inputs: {message: {type: text}}
nodes: {n: {type: userInput, with: {prompt: "How many?", schema: {type: integer}}}}
outputs: {n: "{{ n.value }}"}
`

// A message that answered a question is compared with the answer, also where a child run had asked.
func TestMessageThatAnsweredIsComparedWithItsAnswer(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, own := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, askNumber)
		parent, err := w.Parse("parent.yaml", []byte(`
weir: 1
name: parent
inputs: {message: {type: text}}
nodes: {sub: {type: flow, in: {message: "{{ run.inputs.message }}"}, with: {flow: count}}}
outputs: {n: "{{ sub.n }}"}
`), own)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []*weir.Flow{own, parent} {
			checkAnswering(t, weirkit.OpenSession(t, w, f), f.Name)
		}
	})
}

func checkAnswering(t *testing.T, s *weir.Session, name string) {
	t.Helper()
	first, second := weir.SendOptions{ID: "1-" + name}, weir.SendOptions{ID: "2-" + name}
	if st := weirkit.SendAndWait(t, s, "go", first); st.Status != weir.Paused {
		t.Fatalf("%s: %+v", name, st)
	}
	for range 2 {
		for _, o := range []weir.SendOptions{second, first} {
			said := map[string]string{first.ID: "go", second.ID: "12"}[o.ID]
			if n, err := weir.Output[int64](weirkit.SendAndWait(t, s, said, o).Result, "n"); err != nil || n != 12 {
				t.Errorf("%s: %s: %d, %v", name, said, n, err)
			}
		}
		for _, other := range []string{"13", "go", "twelve", "12.5"} {
			_, err := s.Send(t.Context(), other, second)
			checkReused(t, name+": "+other, err)
		}
		_, err := s.Send(t.Context(), "12", first)
		checkReused(t, name+": the first message", err)
	}
}
