package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

func textsOf(t *testing.T, s *weir.Session) []string {
	t.Helper()
	ms, err := s.Messages(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, m := range ms {
		if m.Position != i {
			t.Fatalf("message %d is at position %d", i, m.Position)
		}
		out = append(out, string(m.Message.Role)+" "+m.Message.Text)
	}
	return out
}

func stores(t *testing.T, do func(t *testing.T, path string)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { do(t, "") })
	t.Run("sqlite", func(t *testing.T) { do(t, filepath.Join(t.TempDir(), "weir.db")) })
}

func TestSessionContinuesOverRounds(t *testing.T) {
	t.Parallel()
	stores(t, goOnOverRounds)
}

func goOnOverRounds(t *testing.T, path string) {
	t.Helper()
	w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		state := weirkit.SendAndWait(t, s, fmt.Sprintf("hello %d", i), weir.SendOptions{})
		want := fmt.Sprintf("%d: hello %d", 2*i+1, i)
		if state.Status.String() != "completed" || state.Text != want || state.Round != i+1 || len(state.Messages) != 2 {
			t.Fatalf("round %d: %+v", i+1, state)
		}
		if answer, err := weir.Output[string](state.Result, "answer"); err != nil || answer != want {
			t.Fatal(answer, err)
		}
		if state.Spent.Input != 10 || state.SentTokens != 10 || state.View != nil {
			t.Fatalf("%+v %+v", state.Spent, state.View)
		}
	}
	again, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna"})
	if err != nil || again.ID != s.ID {
		t.Fatal(again, err)
	}
	want := []string{"user hello 0", "assistant 1: hello 0", "user hello 1", "assistant 3: hello 1", "user hello 2", "assistant 5: hello 2"}
	if got := textsOf(t, again); !slices.Equal(got, want) {
		t.Fatal(strings.Join(got, "\n"))
	}
	info, err := s.Info(t.Context())
	if err != nil || info.Rounds != 3 || info.Length != 6 || info.Usage.Calls != 3 || info.Holder != "" {
		t.Fatalf("%+v %v", info, err)
	}
}

func TestSessionIsFoundByUserFlowAndThread(t *testing.T) {
	t.Parallel()
	stores(t, findSessions)
}

func findSessions(t *testing.T, path string) {
	t.Helper()
	w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	get := func(f *weir.Flow, o weir.SessionOptions) *weir.Session {
		t.Helper()
		s, err := w.Session(t.Context(), f, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := get(f, weir.SessionOptions{User: "anna"})
	weirkit.SendAndWait(t, first, "hello", weir.SendOptions{})
	edited, err := w.Parse("talk.yaml", []byte(strings.Replace(weirkit.TalkFlow, "echo/m", "echo/other", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f    *weir.Flow
		o    weir.SessionOptions
		same bool
	}{
		"the active one":            {f, weir.SessionOptions{User: "anna"}, true},
		"after an edit of the flow": {edited, weir.SessionOptions{User: "anna"}, true},
		"by id":                     {f, weir.SessionOptions{ID: first.ID}, true},
		"by id, without a flow":     {nil, weir.SessionOptions{ID: first.ID}, true},
		"of another user":           {f, weir.SessionOptions{User: "bert"}, false},
		"of nobody":                 {f, weir.SessionOptions{}, false},
		"of another thread":         {f, weir.SessionOptions{User: "anna", Thread: "work"}, false},
	} {
		if s := get(c.f, c.o); (s.ID == first.ID) != c.same {
			t.Errorf("%s: %s", name, s.ID)
		}
		if err := first.Activate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work := get(f, weir.SessionOptions{User: "anna", Thread: "work"})
	if s := get(f, weir.SessionOptions{User: "anna"}); s.ID != first.ID {
		t.Error("a thread that is found becomes the active one")
	}
	other := get(f, weir.SessionOptions{User: "anna", New: true})
	if s := get(f, weir.SessionOptions{User: "anna"}); s.ID != other.ID || s.ID == first.ID || s.ID == work.ID {
		t.Error("the new one is not the active one")
	}
	for name, o := range map[string]weir.SessionOptions{
		"no such id": {ID: "no"}, "another's": {ID: first.ID, User: "bert"},
	} {
		if _, err := w.Session(t.Context(), f, o); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna", Thread: "work", New: true}); !errors.Is(err, store.ErrExists) {
		t.Error(err)
	}
}
