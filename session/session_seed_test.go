package session_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/session"
)

func TestASeedIsTheBeginningOfTheHistory(t *testing.T) {
	t.Parallel()
	stores(t, seedSession)
}

func seedSession(t *testing.T, path string) {
	t.Helper()
	w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna", New: true})
	if err != nil {
		t.Fatal(err)
	}
	seed := []convo.Message{{Role: convo.User, Text: "before"}, {ID: "x", Role: convo.Assistant, Text: "an answer"}}
	state := weirkit.SendAndWait(t, s, "hello", weir.SendOptions{Seed: seed})
	if state.Text != "3: hello" || len(state.Messages) != 2 {
		t.Fatalf("the round with the seed: %+v", state)
	}
	if state = weirkit.SendAndWait(t, s, "again", weir.SendOptions{}); state.Text != "5: again" {
		t.Fatalf("the next round: %+v", state)
	}
	want := []string{"user before", "assistant an answer", "user hello", "assistant 3: hello", "user again", "assistant 5: again"}
	if got := textsOf(t, s); !slices.Equal(got, want) {
		t.Fatal(strings.Join(got, "\n"))
	}
	fork, err := s.Fork(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if state = weirkit.SendAndWait(t, fork, "other", weir.SendOptions{}); state.Text != "2: other" {
		t.Fatalf("a fork in the seed: %+v", state)
	}
	if _, err := s.Send(t.Context(), "late", weir.SendOptions{Seed: seed}); err == nil || !strings.Contains(err.Error(), "cannot be seeded") {
		t.Errorf("a session with messages is seeded: %v", err)
	}
	other, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna", New: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Send(t.Context(), "hello", weir.SendOptions{Seed: []convo.Message{{Role: "owner", Text: "x"}}}); err == nil || !strings.Contains(err.Error(), "message 1 of the seed") {
		t.Errorf("a seed with an unknown role: %v", err)
	}
}

func TestASeedAndASystemTextReachTheModel(t *testing.T) {
	t.Parallel()
	var texts []string
	var system string
	model := &weirkit.RepeatingModel{Sent: func(r *llm.Request) {
		texts, system = nil, r.System
		for _, m := range r.Messages {
			texts = append(texts, string(m.Role)+" "+m.Text)
		}
	}}
	path := filepath.Join(t.TempDir(), "weir.db")
	w, f := weirkit.OpenTalk(t, path, model, strings.Replace(weirkit.TalkFlow, "echo/m", "echo/m, system: Be brief.", 1))
	s := weirkit.OpenSession(t, w, f)
	o := weir.SendOptions{Seed: []convo.Message{{Role: convo.Assistant, Text: "before"}}, Settings: session.RoundSettings{System: "Speak French."}}
	weirkit.SendAndWait(t, s, "hello", o)
	if want := []string{"assistant before", "user hello"}; !slices.Equal(texts, want) || system != "Be brief.\n\nSpeak French." {
		t.Errorf("sent %q with the system text %q", texts, system)
	}
	weirkit.SendAndWait(t, s, "next", weir.SendOptions{})
	if system != "Be brief." {
		t.Errorf("the text stays in the next round: %q", system)
	}
	v, err := audit.Verify(t.Context(), weirkit.OpenSQLite(t, path), audit.Options{})
	if err != nil || len(v.Findings) > 0 {
		t.Errorf("%+v %v", v, err)
	}
}

// TestOnlyOneOfConcurrentSeedsIsTheBeginning sends two first messages with seeds at the same
// time: one is refused, or waits and is refused then.
func TestOnlyOneOfConcurrentSeedsIsTheBeginning(t *testing.T) {
	t.Parallel()
	for range 10 {
		w, f := weirkit.OpenTalk(t, filepath.Join(t.TempDir(), "weir.db"), &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "anna", New: true})
		if err != nil {
			t.Fatal(err)
		}
		seed := []convo.Message{{Role: convo.User, Text: "before"}, {Role: convo.Assistant, Text: "an answer"}}
		var refused atomic.Int32
		inParallel(2, func(int) {
			r, err := s.Send(t.Context(), "hello", weir.SendOptions{Seed: seed})
			if err == nil {
				_, err = r.Wait(t.Context())
			}
			if err != nil && strings.Contains(err.Error(), "cannot be seeded") {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
		want := []string{"user before", "assistant an answer", "user hello", "assistant 3: hello"}
		if got := textsOf(t, s); !slices.Equal(got, want) || refused.Load() != 1 {
			t.Fatalf("%d refused, and the history is %q", refused.Load(), got)
		}
	}
}
