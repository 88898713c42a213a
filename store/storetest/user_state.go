package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func userStateCases() []testCase {
	return []testCase{
		{"a run that completes applies its operations to the values that are there", userStateOfRuns},
		{"operations of parallel runs are each applied once", userStateOfParallelRuns},
		{"a commit that is refused changes no state of users", userStateAfterRefusal},
		{"an operation under another reducer is refused with its commit", userStateConflict},
		{"an operation that expects another value is refused with its commit", userStateExpected},
		{"a round that is repeated stands first in the queue", roundRepeat},
		{"the state of users is set by hand", userStateByHand},
		{"the state goes with its user, and not with runs and sessions", userStateDeleted},
	}
}

// userWrite returns the end of a run that applies operations.
func userWrite(user string, changes ...engine.UserChange) *engine.RunCompleted {
	return &engine.RunCompleted{UserState: &engine.UserStateWrite{User: user, Flow: "flow", Changes: changes}}
}

func sumChange(key string, n int64) engine.UserChange {
	return engine.UserChange{Key: key, Value: n, Reducer: "sum"}
}

// completeWith makes a run that applies operations to the state of a user.
func completeWith(t *testing.T, s Store, run, user string, changes ...engine.UserChange) {
	t.Helper()
	w := newWriter(t, s, run)
	w.append(t, &engine.RunStarted{Parallel: 1, User: user}, userWrite(user, changes...))
}

// checkUserState compares the values of a user with keys, values and versions.
func checkUserState(t *testing.T, s Store, user string, want ...any) {
	t.Helper()
	list, err := s.UserState(t.Context(), user, "flow")
	must(t, err)
	got := []any{}
	for _, v := range list {
		got = append(got, v.Key, v.Value, v.Version)
	}
	equal(t, "state of "+user, got, append([]any{}, want...))
}

func userStateOfRuns(t *testing.T, s Store) {
	checkUserState(t, s, "ada")
	completeWith(t, s, "r1", "ada", sumChange("n", 2), engine.UserChange{Key: "list", Value: []any{"a"}, Reducer: "append"})
	completeWith(t, s, "r2", "ada", engine.UserChange{Key: "list", Value: []any{"b", nil}, Reducer: "append"},
		engine.UserChange{Key: "map", Value: map[string]any{"x": int64(1)}, Initial: map[string]any{"y": 1.5}, Reducer: "merge"}, sumChange("n", -5))
	completeWith(t, s, "r3", "ben", engine.UserChange{Key: "n", Value: int64(7), Initial: int64(3), Reducer: "max"})
	merged := map[string]any{"x": int64(1), "y": 1.5}
	checkUserState(t, s, "ada", "list", []any{"a", "b", nil}, int64(2), "map", merged, int64(1), "n", int64(-3), int64(2))
	s = reopened(t, s)
	completeWith(t, s, "r4", "ada", engine.UserChange{Key: "list", Delete: true, Reducer: "append"}, engine.UserChange{Key: "n", Value: int64(9), Replace: true, Reducer: "sum"})
	checkUserState(t, s, "ada", "map", merged, int64(1), "n", int64(9), int64(3))
	completeWith(t, s, "r5", "ada", engine.UserChange{Key: "list", Value: []any{"c"}, Reducer: "append"})
	checkUserState(t, s, "ada", "list", []any{"c"}, int64(4), "map", merged, int64(1), "n", int64(9), int64(3))
	all, err := s.UserStates(t.Context(), "")
	must(t, err)
	equal(t, "values of all users", len(all), 4)
	last := all[3]
	equal(t, "last value", []any{last.User, last.Flow, last.Key, last.Value, last.Reducer, last.Run, last.By}, []any{"ben", "flow", "n", int64(7), "max", "r3", ""})
}

func userStateOfParallelRuns(t *testing.T, s Store) {
	const runs = 32
	var ws []*writer
	for i := range runs {
		w := newWriter(t, s, fmt.Sprint("r", i))
		w.append(t, &engine.RunStarted{Parallel: 1, User: "ada"})
		ws = append(ws, w)
	}
	var wg sync.WaitGroup
	for i, w := range ws {
		wg.Go(func() {
			a := w.next(userWrite("ada", engine.UserChange{Key: "heard", Value: []any{int64(i)}, Reducer: "append"}, sumChange("n", int64(i))))
			a.Head.Status = engine.Completed
			if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
				t.Error(err)
			}
			if err := s.Append(t.Context(), []store.Append{a})[0]; err == nil { // the acknowledgement was lost
				t.Error("the same commit was appended twice")
			}
		})
	}
	wg.Wait()
	list, err := s.UserState(t.Context(), "ada", "flow")
	must(t, err)
	seen := map[any]bool{}
	for _, v := range list[0].Value.([]any) {
		seen[v] = true
	}
	equal(t, "sum", list[1].Value, int64(runs*(runs-1)/2))
	equal(t, "members and versions", []any{len(seen), len(list[0].Value.([]any)), list[0].Version, list[1].Version}, []any{runs, runs, int64(runs), int64(runs)})
}

func userStateAfterRefusal(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.RunStarted{Parallel: 1, User: "ada"})
	a := w.next(userWrite("ada", sumChange("n", 1)))
	a.Fence--
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrFenced)
	a = w.next(userWrite("ada", sumChange("n", 1)))
	a.Commit.Seq++
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSequence)
	checkUserState(t, s, "ada")
}

func userStateConflict(t *testing.T, s Store) {
	completeWith(t, s, "r1", "ada", sumChange("n", 1), sumChange("other", 1))
	w := newWriter(t, s, "r2")
	w.append(t, &engine.RunStarted{Parallel: 1, User: "ada"})
	refused := w.next(userWrite("ada", sumChange("other", 1), engine.UserChange{Key: "n", Value: int64(5), Reducer: "max"}))
	beside := newWriter(t, s, "r3")
	beside.append(t, &engine.RunStarted{Parallel: 1, User: "ada"})
	errs := s.Append(t.Context(), []store.Append{refused, beside.next(userWrite("ada", sumChange("other", 10)))})
	checkError(t, errs[0], store.ErrStateConflict)
	must(t, errs[1])
	checkUserState(t, s, "ada", "n", int64(1), int64(1), "other", int64(11), int64(2))
	w.check(t, s)
	w.append(t, &engine.RunFailed{Error: &engine.Error{Code: "failed"}})
}

func userStateByHand(t *testing.T, s Store) {
	completeWith(t, s, "r1", "ada", sumChange("n", 1))
	edit := func(changes ...engine.UserChange) error {
		return s.EditUserState(t.Context(), store.UserStateEdit{Write: *userWrite("ada", changes...).UserState, By: "root", At: startTime()})
	}
	must(t, edit(engine.UserChange{Key: "n", Value: "text", Replace: true}, engine.UserChange{Key: "m", Value: int64(1), Replace: true}))
	list, err := s.UserState(t.Context(), "ada", "flow")
	must(t, err)
	equal(t, "value", []any{list[1].Value, list[1].Reducer, list[1].Run, list[1].By, list[1].Version, list[1].At.Equal(startTime())}, []any{"text", "", "", "root", int64(2), true})
	checkError(t, edit(engine.UserChange{Key: "m", Delete: true}, sumChange("n", 1)), store.ErrStateConflict) // a text
	checkUserState(t, s, "ada", "m", int64(1), int64(1), "n", "text", int64(2))
	must(t, edit(engine.UserChange{Key: "n", Delete: true}))
	checkUserState(t, s, "ada", "m", int64(1), int64(1))
}

func userStateDeleted(t *testing.T, s Store) {
	if s.Capabilities().Deletion == nil {
		t.Skip("the store does not declare the capability deletion")
	}
	completeWith(t, s, "r1", "ada", sumChange("n", 1))
	completeWith(t, s, "r2", "ben", sumChange("n", 2))
	_, err := s.DeleteRun(t.Context(), "r1", afterLeasesExpired())
	must(t, err)
	list, err := s.UserState(t.Context(), "ada", "flow")
	must(t, err)
	equal(t, "value of a deleted run", []any{list[0].Value, list[0].Run}, []any{int64(1), ""})
	dry := afterLeasesExpired()
	dry.DryRun = true
	for _, o := range []store.DeleteOptions{dry, afterLeasesExpired()} { // a user without runs
		x, err := s.DeleteUser(t.Context(), "ada", o)
		must(t, err)
		equal(t, "deleted values", x.UserValues, 1)
	}
	checkUserState(t, s, "ada")
	checkUserState(t, s, "ben", "n", int64(2), int64(1))
	must(t, s.Create(t.Context(), store.NewRun{ID: "of-ben", User: "ben", Flow: "flow", At: startTime()}))
	for _, o := range []store.DeleteOptions{dry, afterLeasesExpired()} { // with a run
		x, err := s.DeleteUser(t.Context(), "ben", o)
		must(t, err)
		equal(t, "deleted values", []any{x.UserValues, x.Runs}, []any{1, 1})
	}
	checkUserState(t, s, "ben")
}

// expects returns a change that replaces the value of plan if it is still what was read.
func expects(was, now engine.Value) engine.UserChange {
	return engine.UserChange{Key: "plan", Value: now, Replace: true, Reducer: "none", Expect: engine.UserDigest(was, was != nil)}
}

func userStateExpected(t *testing.T, s Store) {
	completeWith(t, s, "r1", "ada", expects(nil, "one"))
	completeWith(t, s, "r2", "ada", expects("one", map[string]any{"b": 1.0, "a": []any{nil, int64(2)}}))
	s = reopened(t, s)
	read, err := s.UserState(t.Context(), "ada", "flow")
	must(t, err)
	plan := read[0].Value
	var ws []*writer
	for _, run := range []string{"r3", "r4", "r5"} {
		w := newWriter(t, s, run)
		w.append(t, &engine.RunStarted{Parallel: 1, User: "ada"})
		ws = append(ws, w)
	}
	late := ws[2].next(userWrite("ada", sumChange("n", 1), expects(nil, "late")))
	errs := s.Append(t.Context(), []store.Append{
		ws[0].next(userWrite("ada", expects(plan, "three"))),
		ws[1].next(userWrite("ada", sumChange("n", 1), expects(plan, "four"))), late,
	})
	must(t, errs[0])
	checkError(t, errs[1], store.ErrStateConflict)
	checkError(t, errs[2], store.ErrStateConflict)
	checkUserState(t, s, "ada", "plan", "three", int64(3))
	checkError(t, s.Append(t.Context(), []store.Append{late})[0], store.ErrStateConflict)
	ws[1].append(t, &engine.RunFailed{Error: &engine.Error{Code: engine.CodeStateChanged}})
	gone := expects("three", nil)
	gone.Delete, gone.Replace = true, false
	completeWith(t, s, "r6", "ada", gone)
	completeWith(t, s, "r7", "ada", expects(nil, "again"))
	checkUserState(t, s, "ada", "plan", "again", int64(5))
}

// roundRepeat fails a round with a repetition while another message waits.
func roundRepeat(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	r := talk.startAskedRound(t)
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "second", Session: "s", Value: "hello", At: startTime()})
	must(t, err)
	run := r.lease.Run
	again := &engine.RoundRepeat{Message: engine.RepeatID(run), Flow: "fp", RepeatedRound: engine.RepeatedRound{Run: run, Try: 1}}
	a := r.next(&engine.RunFailed{Error: &engine.Error{Code: engine.CodeStateChanged}, Repeat: again})
	a.Head.Status = engine.Failed
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	r.acknowledged(a)
	s = reopened(t, s)
	list, err := s.Queue(t.Context(), "s")
	must(t, err)
	equal(t, "waiting messages", len(list), 2)
	equal(t, "order", []any{list[0].ID, list[1].ID}, []any{again.Message, "second"})
	first, err := s.RoundMessage(t.Context(), run)
	must(t, err)
	equal(t, "sender", []any{list[0].By, list[0].Session, first.TakenBy}, []any{first.By, "s", run})
	read, ok := engine.ReadRepeat(list[0].Value)
	equal(t, "repetition", []any{read, ok}, []any{again.RepeatedRound, true})
	pending, err := s.PendingSessions(t.Context(), "", 10)
	must(t, err)
	equal(t, "sessions that wait", pending, []string{"s"})
	x := session(t, s, "s")
	equal(t, "session", []any{x.Holder, x.Rounds, x.Queued}, []any{"", 1, 2})
	w := roundWriterOf(s, x, "s-2", again.Message)
	w.start.Flow, w.start.At = "f", startTime().Add(time.Minute)
	w.append(t, &engine.RunStarted{Parallel: 1, Session: "s", Round: 2, Repeats: &again.RepeatedRound})
	next, err := s.NextQueued(t.Context(), "s")
	must(t, err)
	equal(t, "next message", next.ID, "second")
	again.Message, again.Run = engine.RepeatID("s-2"), "s-2"
	a = w.next(&engine.RunFailed{Error: &engine.Error{Code: engine.CodeStateChanged}, Repeat: again})
	a.Head.Status = engine.Failed
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	next, err = s.NextQueued(t.Context(), "s")
	must(t, err)
	equal(t, "next message", next.ID, "s-2~")
	must(t, s.RemoveQueued(t.Context(), "s-2~"))
}
