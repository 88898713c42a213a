package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// firstCommit returns a commit that makes its run.
func firstCommit(run string, events ...engine.Event) store.Append {
	w := writer{lease: store.Lease{Run: run, Fence: 1, Owner: "me", TTL: time.Hour}, first: 1}
	a := w.next(events...)
	a.Acquire = &w.lease
	a.Start = &store.RunStart{NewRun: store.NewRun{ID: run, Flow: "flow", Fingerprint: "f1", User: "u", At: startTime()}}
	return a
}

func firstCommitCases() []testCase {
	return []testCase{
		{"a run is created with its first commit", func(t *testing.T, s Store) {
			a := firstCommit("r", &engine.NodeStarted{Path: "a"})
			must(t, s.Append(t.Context(), []store.Append{a})[0])
			sameCommits(t, read(t, s, "r", 0), []engine.Commit{a.Commit})
			r, err := s.Run(t.Context(), "r")
			must(t, err)
			equal(t, "run", []any{r.Flow, r.Fingerprint, r.User, r.Owner, r.Fence, r.Commits}, []any{"flow", "f1", "u", "me", int64(1), int64(1)})
			w := writer{s: s, lease: *a.Acquire, wrote: []engine.Commit{a.Commit}, first: 2}
			w.append(t, &engine.NodeStarted{Path: "b"})
			w.check(t, s)
		}},
		{"a run with a base is created with the commit that follows the base's", forkInFirstCommit},
		{"a run that exists is not created again", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			for range 2 {
				checkError(t, s.Append(t.Context(), []store.Append{firstCommit("r", &engine.NodeStarted{Path: "a"})})[0], store.ErrExists)
				w.append(t, &engine.NodeStarted{Path: "b"})
				w.check(t, s)
			}
		}},
		{"a refused first commit creates no run and does not affect the others", func(t *testing.T, s Store) {
			bad, good, also := firstCommit("bad", &engine.NodeStarted{Path: "a"}), firstCommit("good", &engine.NodeStarted{Path: "a"}), firstCommit("also", &engine.NodeStarted{Path: "a"})
			bad.Commit.First = 7
			also.Start.Base = &store.Base{Run: "none", Seq: 1}
			errs := s.Append(t.Context(), []store.Append{bad, good, also})
			checkError(t, errs[0], store.ErrSequence)
			must(t, errs[1])
			checkError(t, errs[2], store.ErrNotFound)
			for _, id := range []string{"bad", "also"} {
				_, err := s.Run(t.Context(), id)
				checkError(t, err, store.ErrNotFound)
			}
			sameCommits(t, read(t, s, "good", 0), []engine.Commit{good.Commit})
			bad.Commit.First = 1
			must(t, s.Append(t.Context(), []store.Append{bad})[0])
		}},
		{"a run is created, ended and released with one commit", func(t *testing.T, s Store) {
			a := firstCommit("r", &engine.RunCancelled{})
			a.Head.Status, a.Release = engine.Completed, true
			must(t, s.Append(t.Context(), []store.Append{a})[0])
			r, err := s.Run(t.Context(), "r")
			must(t, err)
			equal(t, "run", []any{r.Owner, r.Fence, r.Head.Status}, []any{"", int64(2), engine.Completed})
		}},
		{"one of many concurrent creations of a run succeeds", func(t *testing.T, s Store) {
			errs := make([]error, 16)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() {
					errs[i] = s.Append(t.Context(), []store.Append{firstCommit("r", &engine.NodeStarted{Path: fmt.Sprint("n", i)})})[0]
				})
			}
			wg.Wait()
			checkOneStarted(t, errs)
			equal(t, "commits", len(read(t, s, "r", 0)), 1)
		}},
	}
}

// forkInFirstCommit: a fork is never in the store without a commit of its own.
func forkInFirstCommit(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("x", "1", "one")}})
	w.append(t, &engine.NodeStarted{Path: "b"})
	for seq := range 3 {
		id := fmt.Sprint("f", seq)
		a := firstCommit(id, &engine.RunForked{From: "r", At: int64(seq)}, &engine.NodeStarted{Path: "c"})
		a.Start.Base, a.Commit.Seq, a.Commit.First = &store.Base{Run: "r", Seq: int64(seq)}, int64(seq)+1, int64(seq)+1
		wrong := a
		wrong.Commit.Seq++
		checkError(t, s.Append(t.Context(), []store.Append{wrong})[0], store.ErrSequence)
		_, err := s.Run(t.Context(), id)
		checkError(t, err, store.ErrNotFound)
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		r, err := s.Run(t.Context(), id)
		must(t, err)
		equal(t, "fork", []any{r.Base, r.Owner, r.Fence, r.Commits, r.Events}, []any{a.Start.Base, "me", int64(1), int64(seq) + 1, int64(seq) + 2})
		f := writer{s: s, lease: *a.Acquire, first: 1}
		for _, c := range w.wrote[:seq] {
			c.Run = id
			f.acknowledged(store.Append{Commit: c})
		}
		f.acknowledged(a)
		f.append(t, &engine.NodeCompleted{Path: "c", Contexts: []engine.ContextChange{messageChange("y", "2", "two")}})
		f.check(t, s)
		checkContext(t, s, id, "y", 0, 9, "2")
	}
	w.check(t, s)
}

func checkOneStarted(t *testing.T, errs []error) {
	t.Helper()
	started := 0
	for _, err := range errs {
		switch {
		case err == nil:
			started++
		case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrBusy):
			t.Error(err)
		}
	}
	equal(t, "how many made it", started, 1)
}

// firstOfRound returns a commit that makes a run the next round of a session.
func firstOfRound(x store.Session, run, message string) store.Append {
	a := firstCommit(run, &engine.RunStarted{Parallel: 1, Session: x.ID, Round: x.Rounds + 1, Contexts: []engine.ContextChange{
		{ID: "main", Create: true, Session: x.ID, At: x.Length, Body: &convo.Change{Create: true}},
	}})
	a.Start.Message, a.Start.SessionFence = message, x.Fence
	return a
}

func firstRoundCommitCases() []testCase {
	return []testCase{
		{"a round is created with its first commit and takes its message", func(t *testing.T, s Store) {
			newConversation(t, s, "s")
			for i, id := range []string{"q1", "q2"} {
				_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hi", By: "u", At: startTime()})
				must(t, err)
				x := sessionNow(t, s)
				a := firstOfRound(x, fmt.Sprint("r", i), id)
				a.Carryover = []byte("main")
				must(t, s.Append(t.Context(), []store.Append{a})[0])
				x = sessionNow(t, s)
				equal(t, "session", []any{x.Holder, x.Rounds, x.Fence, x.Queued, string(x.Carryover)}, []any{a.Commit.Run, i + 1, int64(i + 1), 0, "main"})
				q, err := s.FindQueued(t.Context(), id)
				must(t, err)
				equal(t, "message", []any{q.TakenBy, q.Value}, []any{a.Commit.Run, nil})
				w := writer{s: s, lease: *a.Acquire, wrote: []engine.Commit{a.Commit}, first: 2}
				end := w.next(&engine.RunCompleted{})
				end.Head.Status, end.Release = engine.Completed, true
				must(t, s.Append(t.Context(), []store.Append{end})[0])
				equal(t, "holder", sessionNow(t, s).Holder, "")
			}
		}},
		{"a round is not created if the session or its queue has changed", func(t *testing.T, s Store) {
			newConversation(t, s, "s")
			for _, id := range []string{"q1", "q2"} {
				_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hi " + id, At: startTime()})
				must(t, err)
			}
			x := sessionNow(t, s)
			behind := firstOfRound(x, "r", "q2")
			changed := firstOfRound(x, "r", "q1")
			changed.Start.SessionFence++
			based := firstOfRound(x, "r", "q1")
			based.Start.Base = &store.Base{Run: "r", Seq: 1}
			elsewhere := firstOfRound(x, "r", "q1")
			elsewhere.Commit.Events[0].(*engine.RunStarted).Contexts[0].At = 1
			for _, c := range []struct {
				a    store.Append
				want error
			}{
				{behind, store.ErrBusy},
				{changed, store.ErrBusy},
				{based, store.ErrRoundBase},
				{elsewhere, store.ErrSequence},
				{firstOfRound(x, "r", "none"), store.ErrNotFound},
			} {
				checkError(t, s.Append(t.Context(), []store.Append{c.a})[0], c.want)
				_, err := s.Run(t.Context(), "r")
				checkError(t, err, store.ErrNotFound)
				equal(t, "session", sessionNow(t, s), x)
				q, err := s.NextQueued(t.Context(), "s")
				must(t, err)
				equal(t, "first message", []any{q.ID, q.Value}, []any{"q1", "hi q1"})
			}
			must(t, s.Append(t.Context(), []store.Append{firstOfRound(x, "r", "q1")})[0])
			now := sessionNow(t, s)
			checkError(t, s.Append(t.Context(), []store.Append{firstOfRound(now, "r2", "q1")})[0], store.ErrExists)
			checkError(t, s.Append(t.Context(), []store.Append{firstOfRound(now, "r2", "q2")})[0], store.ErrBusy)
		}},
		{"one of many concurrent creations of a round succeeds", func(t *testing.T, s Store) {
			newConversation(t, s, "s")
			_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q", Session: "s", At: startTime()})
			must(t, err)
			x := sessionNow(t, s)
			errs := make([]error, 16)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() {
					errs[i] = s.Append(t.Context(), []store.Append{firstOfRound(x, fmt.Sprint("r", i), "q")})[0]
				})
			}
			wg.Wait()
			checkOneStarted(t, errs)
			equal(t, "rounds", sessionNow(t, s).Rounds, 1)
		}},
	}
}

// sessionNow reads the session s.
func sessionNow(t *testing.T, s Store) store.Session {
	t.Helper()
	x, err := s.Session(t.Context(), "s")
	must(t, err)
	return x
}
