package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// TestUnstartedRoundContinues continues a round without a commit: earlier versions made the
// round and its first commit in two transactions, and could stop between them.
func TestUnstartedRoundContinues(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context, run *weir.Run, err error) error {
		if err == nil {
			_, err = run.Wait(ctx)
		}
		return err
	}
	for name, act := range map[string]func(ctx context.Context, w *weir.Weir, session string) error{
		"resumed": func(ctx context.Context, w *weir.Weir, _ string) error {
			run, err := w.Resume(ctx, "r")
			return wait(ctx, run, err)
		},
		"cancelled": func(ctx context.Context, w *weir.Weir, _ string) error {
			run, err := w.Cancel(ctx, "r", "", "")
			return wait(ctx, run, err)
		},
		"taken over": func(ctx context.Context, w *weir.Weir, session string) error {
			return takeOver(ctx, w, session)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, w := unstartedRound(t)
			if err := act(t.Context(), w, s.ID); err != nil {
				t.Fatal(err)
			}
			if row, err := s.Info(t.Context()); err != nil || row.Holder != "" {
				t.Errorf("%+v %v", row, err)
			}
			texts := historyOf(t, s)
			if want := []string{"hello", "1: hello"}; name != "cancelled" && !slices.Equal(texts, want) {
				t.Errorf("the history is %q, expected %q", texts, want)
			}
			if next := weirkit.SendAndWait(t, s, "next", weir.SendOptions{}); next.Status != weir.Completed || next.Round != 2 {
				t.Errorf("%+v", next)
			}
		})
	}
}

// takeOver continues the one round of a session that is open.
func takeOver(ctx context.Context, w *weir.Weir, session string) error {
	replies, err := w.ContinueSession(ctx, session)
	if err != nil {
		return err
	}
	if len(replies) != 1 {
		return fmt.Errorf("%d replies", len(replies))
	}
	_, err = replies[0].Wait(ctx)
	return err
}

// historyOf returns the texts of a session.
func historyOf(t *testing.T, s *weir.Session) []string {
	t.Helper()
	ms, err := s.Messages(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for i := range ms {
		texts = append(texts, ms[i].Message.Text)
	}
	return texts
}

// unstartedRound returns a session whose round r has no commit.
func unstartedRound(t *testing.T) (*weir.Session, *weir.Weir) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := weirkit.Open(t, weir.Options{Store: st, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
	f := weirkit.Parse(t, w, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	q := store.QueuedMessage{ID: "m1", Session: s.ID, Value: map[string]any{"message": "hello"}, At: time.Now()}
	if _, err := st.Enqueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	n := store.NewRun{ID: "r", Flow: f.Name, Fingerprint: f.Fingerprint(), At: time.Now()}
	if _, _, err := st.StartRound(t.Context(), "m1", n); err != nil {
		t.Fatal(err)
	}
	return s, w
}
