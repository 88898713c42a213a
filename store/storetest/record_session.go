package storetest

import (
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// forkedSessions makes a session "s" of three rounds. After the second, "empty" was forked from its end and has no round,
// "inner" from the first message of that, and "deep" from that, which has a round. "root" has no round and no parent,
// and "child" was forked from it and has a round.
func forkedSessions(t *testing.T, s Store) {
	t.Helper()
	if s.Capabilities().Sessions == nil {
		t.Skip("the store does not declare the capability sessions")
	}
	fork := func(id, parent string, at int) {
		t.Helper()
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, User: "u", Flow: "f", Parent: parent, ParentLength: at, Now: startTime()}))
	}
	set := func(id string, pairs ...any) {
		t.Helper()
		must(t, s.SetSessionState(t.Context(), store.StateEdit{Session: id, Changes: stateChanges(pairs...), By: "u", At: startTime()}))
	}
	talk := newConversation(t, s, "s")
	for range 2 {
		talk.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("n", int64(talk.n))...)
	}
	fork("empty", "s", len(talk.said))
	set("empty", "a", "by hand")
	fork("inner", "empty", 1)
	set("inner", "b", "by hand")
	fork("deep", "inner", 1)
	deep := &conversation{s: s, id: "deep", said: talk.said[:1:1]}
	talk.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("n", int64(3))...)
	deep.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("n", int64(7))...)
	newConversation(t, s, "root")
	set("root", "a", "x")
	fork("child", "root", 0)
	child := &conversation{s: s, id: "child"}
	child.startAskedRound(t).finish(t, engine.Completed)
	set("child", "a", "later")
}

// sameSession compares a session and its state in two stores.
func sameSession(t *testing.T, is, was Store, id string) {
	t.Helper()
	facts := func(s Store) []any {
		x := session(t, s, id)
		out := []any{
			x.User, x.Flow, x.Thread, x.Parent, x.ParentRound, x.ParentLength, x.Created.UnixMilli(), x.Rounds, x.Length, x.Usage, string(x.Carryover), x.StateChanges,
		}
		values, err := s.SessionState(t.Context(), id)
		must(t, err)
		for _, v := range values {
			out = append(out, []any{v.Key, v.Value, v.Reducer, v.Round, v.Run, v.By, v.At.UnixMilli()})
		}
		messages, err := s.SessionMessages(t.Context(), id, 0, 100)
		must(t, err)
		for _, m := range messages {
			out = append(out, m.Message.ID)
		}
		return out
	}
	equal(t, "session "+id, facts(is), facts(was))
}

func restoredForkOfEmptySession(t *testing.T, s Store) {
	forkedSessions(t, s)
	to := restored(t, s, "deep-1", store.ErrSessionAdvanced)
	for _, id := range []string{"empty", "inner", "deep"} {
		sameSession(t, to, s, id)
	}
	equal(t, "rounds of the first session", session(t, to, "s").Rounds, 2)
	to = restored(t, s, "child-1", store.ErrSessionAdvanced)
	for _, id := range []string{"root", "child"} {
		sameSession(t, to, s, id)
	}
	_, err := to.Session(t.Context(), "s")
	checkError(t, err, store.ErrNotFound)
}

func restoredEmptySession(t *testing.T, s Store) {
	forkedSessions(t, s)
	to := restored(t, s, "s-3", store.ErrSessionAdvanced)
	for range 2 { // again: it changes nothing
		for _, id := range []string{"inner", "empty", "root"} {
			sessions, err := s.ArchiveSession(t.Context(), id)
			must(t, err)
			must(t, to.Restore(t.Context(), sessions, nil))
		}
		for _, id := range []string{"s", "empty", "inner", "root"} {
			sameSession(t, to, s, id)
		}
	}
	_, err := s.ArchiveSession(t.Context(), "no")
	checkError(t, err, store.ErrNotFound)
}
