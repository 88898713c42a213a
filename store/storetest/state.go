package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func sessionStateCases() []testCase {
	return []testCase{
		{"a round that completes changes the state of its session", stateOfRounds},
		{"rounds that fail or are cancelled leave the state of the session", stateAfterFailure},
		{"a run that holds no session changes no state", stateOfStaleRound},
		{"a fork of a session has the state of the round boundary before it", stateOfForks},
		{"the state is set by hand only between rounds", stateByHand},
		{"a round starts only with the state that its starter has read", stateReadBeforeRound},
		{"the state is deleted with its session", stateDeleted},
	}
}

// stateChanges returns the changes of a round that sets keys to values.
func stateChanges(pairs ...any) []engine.SessionChange {
	var out []engine.SessionChange
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, engine.SessionChange{Key: pairs[i].(string), Value: pairs[i+1], Reducer: "none"})
	}
	return out
}

// finishWith ends a round that changes the state of its session.
func (r *roundWriter) finishWith(t *testing.T, status engine.Status, changes ...engine.SessionChange) {
	t.Helper()
	var e engine.Event = &engine.RunCompleted{Session: changes}
	switch status {
	case engine.Failed:
		e = &engine.RunFailed{Error: &engine.Error{Code: "failed"}}
	case engine.Cancelled:
		e = &engine.RunCancelled{}
	default:
	}
	a := r.next(e)
	a.Head.Status, a.Carryover = status, fmt.Append(nil, "main after ", r.t.n)
	must(t, r.s.Append(t.Context(), []store.Append{a})[0])
	r.acknowledged(a)
}

// checkState compares the state of a session with keys and values, sorted by key.
func checkState(t *testing.T, s Store, id string, pairs ...any) {
	t.Helper()
	list, err := s.SessionState(t.Context(), id)
	must(t, err)
	got := []any{}
	for _, v := range list {
		got = append(got, v.Key, v.Value)
	}
	equal(t, "state of "+id, got, append([]any{}, pairs...))
}

func stateOfRounds(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	checkState(t, s, "s")
	long := map[string]any{"list": []any{"a", int64(1), 1.5, nil, true}, "$v": int64(1)}
	talk.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("b", int64(1), "a", long)...)
	checkState(t, s, "s", "a", long, "b", int64(1))
	r := talk.startAskedRound(t)
	checkState(t, s, "s", "a", long, "b", int64(1))
	r.finishWith(t, engine.Completed, engine.SessionChange{Key: "a", Delete: true}, engine.SessionChange{Key: "c", Reducer: "none"})
	checkState(t, s, "s", "b", int64(1), "c", nil)
	list, err := s.SessionState(t.Context(), "s")
	must(t, err)
	equal(t, "rounds", []any{list[0].Round, list[0].Run, list[0].Reducer, list[1].Round, list[1].Run}, []any{1, "s-1", "none", 2, "s-2"})
	equal(t, "number of changes", session(t, s, "s").StateChanges, int64(4))
	s = reopened(t, s)
	checkState(t, s, "s", "b", int64(1), "c", nil)
}

func stateAfterFailure(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	talk.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("a", int64(1))...)
	for _, status := range []engine.Status{engine.Failed, engine.Cancelled} {
		talk.startAskedRound(t).finishWith(t, status)
		checkState(t, s, "s", "a", int64(1))
	}
	r := talk.startAskedRound(t)
	r.finishWith(t, engine.Failed)
	r.append(t, &engine.NodeOverridden{Path: "n", Op: "retry"})
	r.finishWith(t, engine.Completed, stateChanges("a", int64(2))...)
	checkState(t, s, "s", "a", int64(2))
}

func stateOfStaleRound(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	old := talk.startAskedRound(t)
	old.finishWith(t, engine.Failed)
	talk.startAskedRound(t).finishWith(t, engine.Completed, stateChanges("a", int64(1))...)
	a := old.next(&engine.RunCompleted{Session: stateChanges("a", int64(9))})
	a.Head.Status = engine.Completed
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSessionAdvanced)
	checkState(t, s, "s", "a", int64(1))
	w := newWriter(t, s, "alone")
	w.append(t, &engine.RunStarted{Parallel: 1})
	w.append(t, &engine.RunCompleted{Session: stateChanges("a", int64(9))})
	checkState(t, s, "s", "a", int64(1))
}

func stateOfForks(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	for i := range 3 { // two messages a round
		r := talk.startAskedRound(t)
		r.say(t)
		r.finishWith(t, engine.Completed, stateChanges("n", int64(i+1), fmt.Sprint("of", i+1), "x")...)
	}
	fork := func(id, parent string, at int) {
		t.Helper()
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, User: "u", Flow: "f", Parent: parent, ParentLength: at, Now: startTime()}))
	}
	for at := range 7 {
		id := fmt.Sprint("fork", at)
		fork(id, "s", at)
		want := []any{}
		if n := at / 2; n > 0 {
			want = append(want, "n", int64(n))
			for i := range n {
				want = append(want, fmt.Sprint("of", i+1), "x")
			}
		}
		checkState(t, s, id, want...)
	}
	must(t, s.SetSessionState(t.Context(), store.StateEdit{Session: "s", Changes: stateChanges("n", int64(10)), At: startTime()}))
	checkState(t, s, "fork6", "n", int64(3), "of1", "x", "of2", "x", "of3", "x")
	fork("late", "s", 6)
	checkState(t, s, "late", "n", int64(10), "of1", "x", "of2", "x", "of3", "x")
	fork("before", "fork6", 3)
	checkState(t, s, "before", "n", int64(1), "of1", "x")
}

func stateByHand(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	edit := func(pairs ...any) error {
		return s.SetSessionState(t.Context(), store.StateEdit{Session: "s", Changes: stateChanges(pairs...), By: "ada", At: startTime()})
	}
	must(t, edit("a", "x"))
	checkState(t, s, "s", "a", "x")
	r := talk.startAskedRound(t)
	checkError(t, edit("a", "y"), store.ErrBusy)
	r.finishWith(t, engine.Failed)
	must(t, edit("a", "z"))
	a := r.next(&engine.NodeOverridden{Path: "n", Op: "retry"})
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSessionAdvanced)
	list, err := s.SessionState(t.Context(), "s")
	must(t, err)
	equal(t, "value", []any{list[0].Value, list[0].By, list[0].Round, list[0].Run, list[0].At.Equal(startTime())}, []any{"z", "ada", 1, "", true})
	checkError(t, s.SetSessionState(t.Context(), store.StateEdit{Session: "no"}), store.ErrNotFound)
	_, err = s.SessionState(t.Context(), "no")
	checkError(t, err, store.ErrNotFound)
}

func stateReadBeforeRound(t *testing.T, s Store) {
	newConversation(t, s, "s")
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q", Session: "s", Value: "x", At: startTime()})
	must(t, err)
	read := session(t, s, "s").StateChanges
	must(t, s.SetSessionState(t.Context(), store.StateEdit{Session: "s", Changes: stateChanges("a", "x"), At: startTime()}))
	start := func() error {
		a := firstOfRound(session(t, s, "s"), "r", "q")
		a.Start.StateChanges = &read
		return s.Append(t.Context(), []store.Append{a})[0]
	}
	checkError(t, start(), store.ErrSessionAdvanced)
	equal(t, "holder", session(t, s, "s").Holder, "")
	read = session(t, s, "s").StateChanges
	must(t, start())
}

func stateDeleted(t *testing.T, s Store) {
	for _, id := range []string{"s", "other"} {
		newConversation(t, s, id).startAskedRound(t).finishWith(t, engine.Completed, stateChanges("a", id)...)
	}
	_, err := s.DeleteSession(t.Context(), "s", afterLeasesExpired())
	must(t, err)
	checkState(t, s, "other", "a", "other")
	newConversation(t, s, "s")
	checkState(t, s, "s")
}
