package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func roundCases() []testCase {
	return []testCase{
		{"messages wait in the order of arrival, each once", queueInOrder},
		{"rounds append to the history of their session as they commit", liveHistory},
		{"a round takes the message at the head of a session that is free", startRoundsInOrder},
		{"an ended round appends no more once another has started", roundAfterSessionAdvanced},
		{"a failed round that continues takes its session back", endedRoundContinues},
		{"a message that answers a round starts none", messagesAnswerQuestions},
		{"a message is refused only while the round is unchanged", refuseQueuedOfRound},
		{"a message that must not wait is accepted only by an idle session", enqueueOnlyIfIdle},
		{"a fork is created with its first message and is not the active session", forkWithFirstMessage},
		{"a run that is no round continues no session", func(t *testing.T, s Store) {
			talk := newConversation(t, s, "s")
			talk.startAskedRound(t).finish(t, engine.Completed)
			w := newWriter(t, s, "r")
			a := w.next(&engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: "s", At: 2}}})
			if err := s.Append(t.Context(), []store.Append{a})[0]; err == nil {
				t.Error("the commit was kept")
			}
			talk.check(t)
		}},
		{"a round continues at the end of its session", func(t *testing.T, s Store) {
			talk := newConversation(t, s, "s")
			talk.startAskedRound(t).finish(t, engine.Completed)
			r := talk.startRound(t)
			for _, at := range []int{0, 1, 3} {
				a := r.next(&engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: "s", At: at}}})
				checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSequence)
			}
			talk.runs = talk.runs[:1] // the second round was never made
			talk.check(t)
		}},
		{"forks and children of rounds see the messages of the round", rootsInRounds},
		{"rounds continue after reopening", func(t *testing.T, s Store) {
			talk := newConversation(t, s, "s")
			r := talk.startAskedRound(t)
			s = reopened(t, s)
			talk.s, r.s = s, s
			r.finish(t, engine.Completed)
			talk.startAskedRound(t).finish(t, engine.Completed)
			talk.check(t)
		}},
	}
}

// conversation is a session with its expected history.
type conversation struct {
	s    Store
	id   string
	n    int
	said []string
	runs []*roundWriter
}

// roundWriter writes one round of it.
type roundWriter struct {
	writer
	t    *conversation
	said []string // of the session, up to the end of this round
}

func newConversation(t *testing.T, s Store, id string) *conversation {
	t.Helper()
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, User: "u", Flow: "f", Now: startTime()}))
	return &conversation{s: s, id: id}
}

// startRound sends a message and returns a writer of the round that it starts with its first
// commit.
func (k *conversation) startRound(t *testing.T) *roundWriter {
	t.Helper()
	k.n++
	q := store.QueuedMessage{ID: fmt.Sprint(k.id, "-q", k.n), Session: k.id, Value: "hello", At: startTime()}
	_, err := k.s.Enqueue(t.Context(), q)
	must(t, err)
	x := session(t, k.s, k.id)
	equal(t, "session", []any{x.Holder, x.Rounds, x.Fence, x.Length, x.Queued}, []any{"", k.n - 1, int64(k.n - 1), len(k.said), 1})
	run := fmt.Sprint(k.id, "-", k.n)
	r := &roundWriter{writer: roundWriterOf(k.s, x, run, q.ID), t: k}
	r.start.Flow, r.start.At = "f", startTime().Add(time.Duration(k.n)*time.Second)
	k.runs = append(k.runs, r)
	return r
}

// roundWriterOf returns a writer of a round whose first commit takes a message.
func roundWriterOf(s Store, x store.Session, run, message string) writer {
	a := firstOfRound(x, run, message)
	return writer{s: s, lease: *a.Acquire, first: 1, start: a.Start}
}

// startAskedRound starts a round whose question is in the history.
func (k *conversation) startAskedRound(t *testing.T) *roundWriter {
	t.Helper()
	r := k.startRound(t)
	r.append(t, &engine.RunStarted{Parallel: 1, Session: k.id, Round: k.n, Contexts: []engine.ContextChange{
		{ID: "main", Create: true, Session: k.id, At: len(k.said), Body: &convo.Change{Create: true}},
	}})
	x := session(t, k.s, k.id)
	equal(t, "session", []any{x.Holder, x.Rounds, x.Fence, x.Length, x.Queued}, []any{r.lease.Run, k.n, int64(k.n), len(k.said), 0})
	r.say(t)
	return r
}

// say appends a message to the history.
func (r *roundWriter) say(t *testing.T) {
	t.Helper()
	id := fmt.Sprintf("%s/%d", r.lease.Run, len(r.wrote))
	r.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", id, "text of "+id+", which is long enough to be shared")}})
	r.t.said = append(r.t.said, id)
	r.said = r.t.said
}

// finish appends one more message and ends the round, with the usage of a call.
func (r *roundWriter) finish(t *testing.T, status engine.Status) {
	t.Helper()
	if status == engine.Completed {
		r.say(t)
	}
	a := r.next(&engine.RunCompleted{})
	a.Head.Status, a.Head.Usage = status, engine.Usage{Calls: 1, CostMicros: 7}
	a.Carryover = fmt.Append(nil, "main after ", r.t.n)
	must(t, r.s.Append(t.Context(), []store.Append{a})[0])
	r.acknowledged(a)
}

// check reads the history in every supported way.
func (k *conversation) check(t *testing.T) {
	t.Helper()
	ms, err := k.s.SessionMessages(t.Context(), k.id, 0, 1<<20)
	must(t, err)
	ids := []string{}
	for i, m := range ms {
		ids = append(ids, m.Message.ID)
		equal(t, "position", m.Position, i)
	}
	equal(t, "history of "+k.id, ids, append([]string{}, k.said...))
	for from := range min(len(k.said), 5) {
		part, err := k.s.SessionMessages(t.Context(), k.id, from, from+2)
		must(t, err)
		equal(t, fmt.Sprint("messages from ", from), part, ms[from:min(from+2, len(ms))])
		alone, err := k.s.SessionHistory(t.Context(), k.id, from, from+2)
		must(t, err)
		equal(t, fmt.Sprint("history from ", from), len(alone), len(part))
		for i := range alone {
			equal(t, "message", alone[i], part[i].Message)
		}
	}
	for _, r := range k.runs {
		checkContext(t, k.s, r.lease.Run, "main", 0, 1<<20, r.said...)
		r.check(t, k.s)
	}
	equal(t, "length", session(t, k.s, k.id).Length, len(k.said))
}

func queueInOrder(t *testing.T, s Store) {
	newConversation(t, s, "s")
	newConversation(t, s, "other")
	var want []store.QueuedMessage
	for i := range 5 {
		q := store.QueuedMessage{ID: fmt.Sprint("q", i), Session: "s", Value: map[string]any{"text": fmt.Sprint("hello ", i)}, By: "u", At: startTime()}
		got, err := s.Enqueue(t.Context(), q)
		must(t, err)
		q.At = got.At
		equal(t, "kept", got, q)
		want = append(want, q)
	}
	again, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q2", Session: "s", Value: "something else", At: startTime()})
	must(t, err)
	equal(t, "the first comes back", again, want[2])
	_, err = s.Enqueue(t.Context(), store.QueuedMessage{ID: "q2", Session: "other", At: startTime()})
	checkError(t, err, store.ErrExists)
	must(t, s.RemoveQueued(t.Context(), "q1"))
	checkError(t, s.RemoveQueued(t.Context(), "q1"), store.ErrNotFound)
	s = s.reopen(t)
	list, err := s.Queue(t.Context(), "s")
	must(t, err)
	for i := range list {
		list[i].At = want[0].At
	}
	equal(t, "queue", list, append(want[:1:1], want[2:]...))
	equal(t, "how many wait", session(t, s, "s").Queued, 4)
	next, err := s.NextQueued(t.Context(), "s")
	must(t, err)
	equal(t, "next", next.ID, "q0")
	_, err = s.NextQueued(t.Context(), "other")
	checkError(t, err, store.ErrNotFound)
}

func liveHistory(t *testing.T, s Store) {
	count := s.Capabilities().CountTokens
	if count != nil {
		count(func(m convo.Message) int { return 100 + len(m.Text) })
	}
	talk := newConversation(t, s, "s")
	for range 4 {
		r := talk.startAskedRound(t)
		talk.check(t)
		r.finish(t, engine.Completed)
		talk.check(t)
	}
	r := talk.startAskedRound(t)
	r.finish(t, engine.Failed)
	talk.check(t)
	x := session(t, s, "s")
	equal(t, "session", []any{x.Holder, x.Usage, string(x.Carryover), x.Rounds}, []any{"", engine.Usage{Calls: 5, CostMicros: 35}, "main after 5", 5})
	equal(t, "updated", x.Updated.Equal(startTime().Add(5*time.Second)), true)
	run, err := s.Run(t.Context(), "s-3")
	must(t, err)
	equal(t, "run", []any{run.Session, run.Round}, []any{"s", 3})
	runs, err := s.Runs(t.Context(), store.Filter{Session: "s", Limit: 2, Before: "s-5"})
	must(t, err)
	equal(t, "rounds", len(runs) == 2 && runs[0].ID == "s-4" && runs[1].ID == "s-3", true)
	ms, err := s.SessionMessages(t.Context(), "s", 7, 9)
	must(t, err)
	equal(t, "who said what", []any{ms[0].Run, ms[0].Round, ms[0].Status, ms[1].Run, ms[1].Round, ms[1].Status},
		[]any{"s-4", 4, engine.Completed, "s-5", 5, engine.Failed})
	equal(t, "at", ms[0].At.UnixMilli(), talk.runs[3].wrote[2].At)
	if count != nil {
		equal(t, "tokens", []any{ms[0].Tokens, ms[1].Tokens}, []any{100 + len(ms[0].Message.Text), 100 + len(ms[1].Message.Text)})
	}
	// A round without messages leaves no carryover.
	talk.startRound(t).finish(t, engine.Cancelled)
	talk.check(t)
	talk.startAskedRound(t).finish(t, engine.Completed)
	talk.check(t)
}

func startRoundsInOrder(t *testing.T, s Store) {
	newConversation(t, s, "s")
	for _, id := range []string{"q1", "q2"} {
		_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hi " + id, At: startTime()})
		must(t, err)
	}
	start := func(run, message string, want error) {
		t.Helper()
		checkError(t, s.Append(t.Context(), []store.Append{firstOfRound(sessionNow(t, s), run, message)})[0], want)
	}
	start("r", "q2", store.ErrBusy)
	newWriter(t, s, "taken")
	start("taken", "q1", store.ErrExists)
	start("r", "q1", nil)
	start("r2", "q1", store.ErrExists)
	start("r2", "q2", store.ErrBusy)
	equal(t, "who holds the session", sessionNow(t, s).Holder, "r")
	checkError(t, s.RemoveQueued(t.Context(), "q1"), store.ErrNotFound)

	took, err := s.RoundMessage(t.Context(), "r")
	must(t, err)
	equal(t, "message", []any{took.ID, took.TakenBy, took.Value}, []any{"q1", "r", nil})
	w := writer{s: s, lease: store.Lease{Run: "r", Fence: 1, Owner: "me"}, first: 2, wrote: make([]engine.Commit, 1)}
	a := w.next(&engine.RunCancelled{})
	a.Head.Status = engine.Cancelled
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	sent, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q1", Session: "s", Value: "hi q1", At: startTime()})
	must(t, err)
	equal(t, "sent twice", sent.TakenBy, "r")
	start("r2", "q2", nil)
}

func roundAfterSessionAdvanced(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	first := talk.startAskedRound(t)
	first.finish(t, engine.Failed)
	second := talk.startAskedRound(t)
	try := func(r *roundWriter, want error) {
		t.Helper()
		a := r.next(&engine.NodeOverridden{Path: "n", Op: "retry"}, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "late", "too late")}})
		checkError(t, s.Append(t.Context(), []store.Append{a})[0], want)
		talk.check(t)
	}
	try(first, store.ErrSessionAdvanced)
	second.finish(t, engine.Completed)
	try(first, store.ErrSessionAdvanced)
	equal(t, "usage", session(t, s, "s").Usage.Calls, 2)
	stale := second.next(&engine.NodeOverridden{Path: "n", Op: "retry"})
	stale.Fence += 7
	checkError(t, s.Append(t.Context(), []store.Append{stale})[0], store.ErrFenced)
	equal(t, "a commit that is refused takes nothing back", session(t, s, "s").Holder, "")
}

func endedRoundContinues(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	talk.startAskedRound(t).finish(t, engine.Completed)
	r := talk.startAskedRound(t)
	r.finish(t, engine.Failed)
	equal(t, "usage", session(t, s, "s").Usage, engine.Usage{Calls: 2, CostMicros: 14})
	a := r.next(&engine.NodeOverridden{Path: "n", Op: "retry"})
	a.Head.Usage = engine.Usage{Calls: 1, CostMicros: 7}
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	r.acknowledged(a)
	x := session(t, s, "s")
	equal(t, "holder", x.Holder, r.lease.Run)
	equal(t, "usage", x.Usage, engine.Usage{Calls: 1, CostMicros: 7})
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "next", Session: "s", At: startTime()})
	must(t, err)
	next := func() error {
		return s.Append(t.Context(), []store.Append{firstOfRound(session(t, s, "s"), "next", "next")})[0]
	}
	checkError(t, next(), store.ErrBusy)
	r.say(t)
	r.finish(t, engine.Completed)
	talk.check(t)
	x = session(t, s, "s")
	equal(t, "session", []any{x.Holder, x.Usage, x.Rounds}, []any{"", engine.Usage{Calls: 2, CostMicros: 14}, 2})
	must(t, next())
}

func rootsInRounds(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	for range 3 {
		talk.startAskedRound(t).finish(t, engine.Completed)
	}
	second := talk.runs[1]
	f := fork(t, s, &second.writer, "f", 2) // after its question
	checkContext(t, s, "f", "main", 0, 99, talk.said[:3]...)
	f.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "other", "another answer")}})
	checkContext(t, s, "f", "main", 0, 99, append(talk.said[:3:3], "other")...)
	run, err := s.Run(t.Context(), "f")
	must(t, err)
	equal(t, "a fork is no round", []any{run.Session, run.Round}, []any{"", 0})
	c := newWriter(t, s, "c")
	c.append(t, &engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Run: second.lease.Run, Parent: "main", At: 3}}})
	c.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "child", "said in the child")}})
	checkContext(t, s, "c", "main", 0, 99, append(talk.said[:3:3], "child")...)
	begun := fork(t, s, &second.writer, "begun", 1)
	checkContext(t, s, "begun", "main", 0, 99, talk.said[:2]...)
	begun.check(t, s)
	f.check(t, s)
	talk.check(t)
}
