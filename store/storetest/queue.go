package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// messagesAnswerQuestions: messages answer questions of a round instead of starting one.
func messagesAnswerQuestions(t *testing.T, s Store) {
	newConversation(t, s, "s")
	for i := range 3 {
		_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: fmt.Sprint("q", i), Session: "s", Value: "hi", At: startTime()})
		must(t, err)
	}
	q, err := s.FindQueued(t.Context(), "q1")
	must(t, err)
	equal(t, "a message that waits", []any{q.Session, q.Value, q.TakenBy}, []any{"s", "hi", ""})
	_, err = s.FindQueued(t.Context(), "no")
	checkError(t, err, store.ErrNotFound)
	w := roundWriterOf(s, session(t, s, "s"), "r", "q0")
	w.append(t, &engine.NodeStarted{Path: "a"})
	answer := func(want error, messages ...string) {
		t.Helper()
		a := w.next(&engine.InterruptAnswered{ID: "i", Value: "hi"})
		a.ConsumedMessages = messages
		err := s.Append(t.Context(), []store.Append{a})[0]
		checkError(t, err, want)
		if err == nil {
			w.acknowledged(a)
		}
	}
	answer(store.ErrNotQueued, "no message")
	answer(store.ErrNotQueued, "q2", "q0") // q0 started the round; neither is taken
	stale := w.next(&engine.InterruptAnswered{ID: "i"})
	stale.ConsumedMessages, stale.Fence = []string{"q2"}, stale.Fence+7
	checkError(t, s.Append(t.Context(), []store.Append{stale})[0], store.ErrFenced)
	waits, err := s.NotQueued(t.Context(), []string{"q0", "q1", "q2", "q3"})
	must(t, err)
	equal(t, "those that do not wait", waits, []string{"q0", "q3"})
	waits, err = s.NotQueued(t.Context(), nil)
	must(t, err)
	equal(t, "of none", waits, []string{})
	answer(nil, "q2") // not the first one, but the one that fits
	answer(store.ErrNotQueued, "q2")
	w.check(t, s)
	checkError(t, s.RemoveQueued(t.Context(), "q2"), store.ErrNotFound)
	s = s.reopen(t)
	q, err = s.FindQueued(t.Context(), "q2")
	must(t, err)
	equal(t, "a message that was taken", []any{q.Value, q.TakenBy}, []any{nil, "r"})
	q, err = s.Enqueue(t.Context(), store.QueuedMessage{ID: "q2", Session: "s", Value: "hi", At: startTime()})
	must(t, err)
	equal(t, "sent twice", q.TakenBy, "r")
	q, err = s.RoundMessage(t.Context(), "r")
	must(t, err)
	equal(t, "what began the round", []any{q.ID, q.Value}, []any{"q0", nil})
	list, err := s.Queue(t.Context(), "s")
	must(t, err)
	equal(t, "what waits", []any{len(list), list[0].ID}, []any{1, "q1"})
}

// refuseQueuedOfRound: a message that a round cannot take is only refused while the round is unchanged.
func refuseQueuedOfRound(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	r := talk.startAskedRound(t) // two commits
	for _, id := range []string{"q1", "q2"} {
		_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hi", At: startTime()})
		must(t, err)
	}
	checkError(t, s.RefuseQueued(t.Context(), "q1", "other", 2), store.ErrSessionAdvanced)
	checkError(t, s.RefuseQueued(t.Context(), "q1", r.lease.Run, 1), store.ErrSessionAdvanced)
	checkError(t, s.RefuseQueued(t.Context(), "no", r.lease.Run, 2), store.ErrNotQueued)
	must(t, s.RefuseQueued(t.Context(), "q1", r.lease.Run, 2))
	checkError(t, s.RefuseQueued(t.Context(), "q1", r.lease.Run, 2), store.ErrNotQueued)
	r.finish(t, engine.Completed)
	checkError(t, s.RefuseQueued(t.Context(), "q2", r.lease.Run, 4), store.ErrSessionAdvanced)
	equal(t, "how many wait", session(t, s, "s").Queued, 1)
}

// enqueueOnlyIfIdle: messages are only stored if the session is idle.
func enqueueOnlyIfIdle(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	send := func(id string, want error) {
		t.Helper()
		_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hi", At: startTime(), OnlyIfIdle: true})
		checkError(t, err, want)
	}
	r := talk.startAskedRound(t)
	send("a", store.ErrBusy)
	_, err := s.FindQueued(t.Context(), "a")
	checkError(t, err, store.ErrNotFound)
	a := r.next(&engine.NodeWaiting{Path: "n"})
	a.Head.Status = engine.Paused
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	r.acknowledged(a)
	send("a", nil) // for the question
	send("a", nil) // sent twice
	send("b", store.ErrBusy)
	must(t, s.RemoveQueued(t.Context(), "a"))
	r.finish(t, engine.Failed)
	send("b", nil)
	send("c", store.ErrBusy)
	_, err = s.Enqueue(t.Context(), store.QueuedMessage{ID: "d", Session: "no", At: startTime(), OnlyIfIdle: true})
	checkError(t, err, store.ErrNotFound)
}

// forkWithFirstMessage creates a fork with its first message in one write.
func forkWithFirstMessage(t *testing.T, s Store) {
	newConversation(t, s, "s").startAskedRound(t).finish(t, engine.Completed)
	fork := func(id, message string) store.NewSession {
		return store.NewSession{
			ID: id, User: "u", Flow: "f", Parent: "s", ParentLength: 1, Now: startTime(),
			FirstMessage: &store.QueuedMessage{ID: message, Session: id, Value: "aside", At: startTime()},
		}
	}
	must(t, s.CreateSession(t.Context(), fork("x", "m1")))
	checkError(t, s.CreateSession(t.Context(), fork("x", "m2")), store.ErrExists)
	checkError(t, s.CreateSession(t.Context(), fork("y", "m1")), store.ErrExists)
	_, err := s.Session(t.Context(), "y")
	checkError(t, err, store.ErrNotFound)
	q, err := s.NextQueued(t.Context(), "x")
	must(t, err)
	equal(t, "its first message", []any{q.ID, q.Value}, []any{"m1", "aside"})
	active, err := s.FindSession(t.Context(), "u", "f", "")
	must(t, err)
	equal(t, "the active session", active.ID, "s")
	must(t, s.ActivateSession(t.Context(), "x"))
	active, err = s.FindSession(t.Context(), "u", "f", "")
	must(t, err)
	equal(t, "the active session", active.ID, "x")
}

// postsOfOwner reads the messages to all runs of an owner; commits remove those that they have processed.
func postsOfOwner(t *testing.T, s Store) {
	r := newWriter(t, s, "r")
	newWriter(t, s, "mine")
	must(t, s.Create(t.Context(), store.NewRun{ID: "nobody's", At: startTime()}))
	for _, run := range []string{"r", "nobody's", "mine", "r"} {
		must(t, s.Post(t.Context(), store.Post{Run: run, Kind: "cancel", At: startTime()}))
	}
	runs := func() (out []string, ids []int64) {
		t.Helper()
		posts, err := s.PostsForOwner(t.Context(), "me")
		must(t, err)
		for _, p := range posts {
			out, ids = append(out, p.Run), append(ids, p.ID)
		}
		return out, ids
	}
	got, ids := runs()
	equal(t, "to my runs", got, []string{"r", "mine", "r"})
	a := r.next(&engine.CancelRequested{})
	a.ConsumedPosts, a.Fence = []int64{ids[0]}, a.Fence+1
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrFenced)
	got, _ = runs()
	equal(t, "a refused commit removes none", len(got), 3)
	a.Fence--
	a.ConsumedPosts = []int64{ids[0], ids[2]}
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	got, _ = runs()
	equal(t, "left", got, []string{"mine"})
	posts, err := s.PostsForOwner(t.Context(), "nobody")
	must(t, err)
	equal(t, "to nobody's runs", len(posts), 0)
}
