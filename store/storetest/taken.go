package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/store"
)

// takenAsAnswers has messages answer questions of a round instead of beginning
// one.
func takenAsAnswers(t *testing.T, s Store) {
	newTalk(t, s, "s")
	for i := range 3 {
		_, err := s.Enqueue(t.Context(), store.Queued{ID: fmt.Sprint("q", i), Session: "s", Value: "hi", At: epoch()})
		must(t, err)
	}
	q, err := s.FindQueued(t.Context(), "q1")
	must(t, err)
	equal(t, "a message that waits", []any{q.Session, q.Value, q.Run}, []any{"s", "hi", ""})
	_, err = s.FindQueued(t.Context(), "no")
	is(t, err, store.ErrNotFound)
	_, _, err = s.BeginRound(t.Context(), "q0", store.NewRun{ID: "r", At: epoch()})
	must(t, err)
	is(t, s.TakeQueued(t.Context(), "q2", "no run"), store.ErrNotFound)
	must(t, s.TakeQueued(t.Context(), "q2", "r")) // not the first: it is the one that fits
	is(t, s.TakeQueued(t.Context(), "q2", "r"), store.ErrNotFound)
	is(t, s.TakeQueued(t.Context(), "q0", "r"), store.ErrNotFound)
	is(t, s.Unqueue(t.Context(), "q2"), store.ErrNotFound)
	if r, ok := s.(Reopener); ok {
		s = r.Reopen(t)
	}
	q, err = s.FindQueued(t.Context(), "q2")
	must(t, err)
	equal(t, "a message that was taken", []any{q.Value, q.Run}, []any{nil, "r"})
	q, err = s.Enqueue(t.Context(), store.Queued{ID: "q2", Session: "s", Value: "hi", At: epoch()})
	must(t, err)
	equal(t, "sent twice", q.Run, "r")
	q, err = s.RoundMessage(t.Context(), "r")
	must(t, err)
	equal(t, "what began the round", []any{q.ID, q.Value}, []any{"q0", "hi"})
	list, err := s.Queue(t.Context(), "s")
	must(t, err)
	equal(t, "what waits", []any{len(list), list[0].ID}, []any{1, "q1"})
}
