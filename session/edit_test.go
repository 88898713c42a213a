package session_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

func TestEditingAndRegeneratingContinueInAForkBeforeTheMessage(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
		weirkit.SendAndWait(t, s, "two", weir.SendOptions{})
		before := textsOf(t, s)
		start := map[string]func() (*weir.Reply, error){
			"edit the first": func() (*weir.Reply, error) { return s.Edit(t.Context(), 0, "other", weir.SendOptions{}) },
			"edit the last":  func() (*weir.Reply, error) { return s.Edit(t.Context(), 2, "other", weir.SendOptions{}) },
			"the last again": func() (*weir.Reply, error) { return s.Regenerate(t.Context(), -1, weir.SendOptions{}) },
			"one again":      func() (*weir.Reply, error) { return s.Regenerate(t.Context(), 0, weir.SendOptions{}) },
		}
		for name, want := range map[string][]string{
			"edit the first": {"user other", "assistant 1: other"},
			"edit the last":  append(slices.Clone(before[:2]), "user other", "assistant 3: other"),
			"the last again": append(slices.Clone(before[:2]), "user two", "assistant 3: two"),
			"one again":      {"user one", "assistant 1: one"},
		} {
			r, err := start[name]()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := r.Wait(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := textsOf(t, r.Session); !slices.Equal(got, want) || r.Session.ID == s.ID {
				t.Errorf("%s: %q in %s", name, got, r.Session.ID)
			}
		}
		if got := textsOf(t, s); !slices.Equal(got, before) {
			t.Errorf("the session became %q", got)
		}
	})
}

func TestOnlyMessagesOfAPersonAreEdited(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	_, err := s.Regenerate(t.Context(), -1, weir.SendOptions{})
	refused := func(err error) bool {
		e, ok := errors.AsType[*engine.Error](err)
		return ok && e.Code == engine.CodeInput
	}
	if !refused(err) {
		t.Errorf("an empty session: %v", err)
	}
	weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
	for _, at := range []int{-1, 1, 2, 99} {
		if _, err := s.Edit(t.Context(), at, "other", weir.SendOptions{}); !refused(err) {
			t.Errorf("position %d: %v", at, err)
		}
	}
	// What cannot be sent leaves no fork.
	if _, err := s.Edit(t.Context(), 0, "", weir.SendOptions{}); !refused(err) {
		t.Errorf("an empty message: %v", err)
	}
	if list, err := w.Sessions(t.Context(), store.SessionFilter{}); err != nil || len(list) != 1 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

// A process may die after it has made the fork, and the sender sends again.
func TestEditingAgainUnderAnIDReturnsTheSameReply(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
		for name, send := range map[string]func(id string) (*weir.Reply, error){
			"edit":       func(id string) (*weir.Reply, error) { return s.Edit(t.Context(), 0, "other", weir.SendOptions{ID: id}) },
			"regenerate": func(id string) (*weir.Reply, error) { return s.Regenerate(t.Context(), 0, weir.SendOptions{ID: id}) },
		} {
			first, err := send(name + "-1")
			if err != nil {
				t.Fatal(name, err)
			}
			again, err := send(name + "-1")
			if err != nil || again.Session.ID != first.Session.ID || again.Message != first.Message {
				t.Errorf("%s again: %v", name, err)
			}
			if _, err := again.Wait(t.Context()); err != nil {
				t.Error(name, err)
			}
			other, err := send(name + "-2")
			if err != nil || other.Session.ID == first.Session.ID {
				t.Errorf("%s under another id: %v", name, err)
			}
			if _, err := other.Wait(t.Context()); err != nil {
				t.Error(name, err)
			}
		}
	})
}
