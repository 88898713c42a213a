package session_test

import (
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
)

func TestEnqueuedMessageIsTakenOnceByTheNextSender(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		for range 3 {
			kept, err := s.Enqueue(t.Context(), "one", weir.SendOptions{ID: "m1"})
			if err != nil || kept.Session != s.ID || kept.Message != "m1" || kept.Run != "" {
				t.Fatal(kept, err)
			}
		}
		if info, err := s.Info(t.Context()); err != nil || info.Rounds != 0 || info.Queued != 1 {
			t.Fatal(info, err)
		}
		checkTakenOnce(t, s)
	})
}

// checkTakenOnce sends a message after an enqueued one, and that one again.
func checkTakenOnce(t *testing.T, s *weir.Session) {
	t.Helper()
	if st := weirkit.SendAndWait(t, s, "two", weir.SendOptions{}); st.Round != 2 || st.Text != "3: two" {
		t.Errorf("%+v", st)
	}
	kept, err := s.Enqueue(t.Context(), "one", weir.SendOptions{ID: "m1"})
	if err != nil || kept.Run == "" {
		t.Error(kept, err)
	}
	if again := weirkit.SendAndWait(t, s, "one", weir.SendOptions{ID: "m1"}); again.Run != kept.Run || again.Text != "1: one" {
		t.Errorf("%+v", again)
	}
	if _, err := s.Enqueue(t.Context(), " ", weir.SendOptions{}); err == nil {
		t.Error("an empty message was kept")
	}
	if info, err := s.Info(t.Context()); err != nil || info.Rounds != 2 || info.Queued != 0 {
		t.Error(info, err)
	}
}
