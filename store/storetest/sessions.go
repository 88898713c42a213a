package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func sessionCases() []testCase {
	return []testCase{
		{"a session has the data that it was created with", oneSession},
		{"ids and threads of sessions are unique", func(t *testing.T, s Store) {
			n := store.NewSession{ID: "s", User: "u", Flow: "f", Thread: "t", Now: startTime()}
			must(t, s.CreateSession(t.Context(), n))
			checkError(t, s.CreateSession(t.Context(), n), store.ErrExists)
			n.Thread = "other"
			checkError(t, s.CreateSession(t.Context(), n), store.ErrExists)
			n.ID, n.Thread = "s2", "t"
			checkError(t, s.CreateSession(t.Context(), n), store.ErrExists)
			for _, change := range []func(){func() { n.User = "v" }, func() { n.ID, n.Flow = "s3", "g" }, func() { n.ID, n.Thread = "s4", "t2" }} {
				change()
				must(t, s.CreateSession(t.Context(), n))
			}
		}},
		{"without a thread the session created or activated last is found", activeSession},
		{"sessions are listed newest first, filtered and in pages", listSessions},
		{"a missing session is an error everywhere", missingSession},
		{"a session may begin with messages of another", forkedSession},
	}
}

func session(t *testing.T, s Store, id string) store.Session {
	t.Helper()
	x, err := s.Session(t.Context(), id)
	must(t, err)
	return x
}

func oneSession(t *testing.T, s Store) {
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "s", User: "u", Flow: "f", Now: startTime(), Expires: startTime().Add(time.Hour)}))
	x := session(t, s, "s")
	equal(t, "times", x.Created.Equal(startTime()) && x.Updated.Equal(startTime()) && x.Expires.Equal(startTime().Add(time.Hour)), true)
	x.Created, x.Updated, x.Expires = time.Time{}, time.Time{}, time.Time{}
	equal(t, "session", x, store.Session{ID: "s", User: "u", Flow: "f", Thread: "s"})
	must(t, s.ExpireSession(t.Context(), "s", time.Time{}))
	equal(t, "expires", session(t, s, "s").Expires.IsZero(), true)
	ms, err := s.SessionMessages(t.Context(), "s", 0, 10)
	must(t, err)
	equal(t, "messages", ms, []store.SessionMessage{})
}

func activeSession(t *testing.T, s Store) {
	for _, id := range []string{"a", "b", "c"} {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, User: "u", Flow: "f", Thread: "t" + id, Now: startTime()}))
	}
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "other", Flow: "f", Now: startTime()}))
	find := func(user, thread, want string) {
		t.Helper()
		x, err := s.FindSession(t.Context(), user, "f", thread)
		if want == "" {
			checkError(t, err, store.ErrNotFound)
			return
		}
		must(t, err)
		equal(t, "found", x.ID, want)
	}
	find("u", "", "c")
	find("u", "ta", "a")
	find("u", "other", "")
	find("", "", "other")
	find("nobody", "", "")
	must(t, s.ActivateSession(t.Context(), "a"))
	find("u", "", "a")
	find("", "", "other")
	must(t, s.ActivateSession(t.Context(), "b"))
	find("u", "", "b")
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "d", User: "u", Flow: "f", Now: startTime()}))
	find("u", "", "d")
}

func listSessions(t *testing.T, s Store) {
	for i := range 105 {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: fmt.Sprintf("s%03d", i), User: fmt.Sprint("u", i%2), Flow: fmt.Sprint("f", i%3), Now: startTime()}))
	}
	list := func(f store.SessionFilter) (ids []string) {
		t.Helper()
		page, err := s.Sessions(t.Context(), f)
		must(t, err)
		for _, x := range page {
			ids = append(ids, x.ID)
		}
		return ids
	}
	equal(t, "default limit", len(list(store.SessionFilter{})), 100)
	equal(t, "newest", list(store.SessionFilter{Limit: 2}), []string{"s104", "s103"})
	equal(t, "filtered", list(store.SessionFilter{User: "u1", Flow: "f0", Limit: 2}), []string{"s099", "s093"})
	equal(t, "before", list(store.SessionFilter{User: "u1", Flow: "f0", Before: "s010"}), []string{"s009", "s003"})
	equal(t, "by the beginning of the id", list(store.SessionFilter{Prefix: "s10", Limit: 2}), []string{"s104", "s103"})
	equal(t, "by the beginning of the id, filtered", list(store.SessionFilter{Prefix: "s00", User: "u1", Flow: "f0"}), []string{"s009", "s003"})
	equal(t, "by the beginning of the id, before", list(store.SessionFilter{Prefix: "s10", Before: "s101"}), []string{"s100"})
	equal(t, "by characters with a meaning elsewhere", len(list(store.SessionFilter{Prefix: "s%"}))+len(list(store.SessionFilter{Prefix: "s_0"})), 0)
	equal(t, "nobody's", len(list(store.SessionFilter{User: "x"})), 0)
	_, err := s.Sessions(t.Context(), store.SessionFilter{Before: "no"})
	checkError(t, err, store.ErrNotFound)
}

func missingSession(t *testing.T, s Store) {
	ctx := t.Context()
	_, err := s.Session(ctx, "no")
	checkError(t, err, store.ErrNotFound)
	_, err = s.FindSession(ctx, "", "f", "")
	checkError(t, err, store.ErrNotFound)
	checkError(t, s.ActivateSession(ctx, "no"), store.ErrNotFound)
	checkError(t, s.ExpireSession(ctx, "no", startTime()), store.ErrNotFound)
	_, err = s.SessionMessages(ctx, "no", 0, 1)
	checkError(t, err, store.ErrNotFound)
	_, err = s.Enqueue(ctx, store.QueuedMessage{ID: "q", Session: "no", At: startTime()})
	checkError(t, err, store.ErrNotFound)
	_, err = s.Queue(ctx, "no")
	checkError(t, err, store.ErrNotFound)
	_, err = s.NextQueued(ctx, "no")
	checkError(t, err, store.ErrNotFound)
	checkError(t, s.RemoveQueued(ctx, "no"), store.ErrNotFound)
	newWriter(t, s, "r")
	for _, run := range []string{"no", "r", ""} {
		_, err = s.RoundMessage(ctx, run)
		checkError(t, err, store.ErrNotFound)
	}
	for _, n := range []store.NewSession{{ID: "s", Parent: "no"}, {ID: "s", ParentLength: 1}} {
		checkError(t, s.CreateSession(ctx, n), store.ErrNotFound)
	}
	runs, err := s.Runs(ctx, store.Filter{Session: "no"})
	must(t, err)
	equal(t, "runs", len(runs), 0)
}

// forkedSession forks a session between rounds and within one, and forks the fork.
func forkedSession(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	for range 3 {
		talk.startAskedRound(t).finish(t, engine.Completed)
	}
	for _, n := range []store.NewSession{{ID: "x", Parent: "s", ParentLength: 7}, {ID: "x", Parent: "s", ParentLength: -1}} {
		checkError(t, s.CreateSession(t.Context(), n), store.ErrNotFound)
	}
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "f", Parent: "s", ParentLength: 3, Now: startTime()}))
	x := session(t, s, "f")
	equal(t, "fork", []any{x.Parent, x.ParentRound, x.ParentLength, x.Length, x.Rounds, x.Carryover}, []any{"s", 3, 3, 3, 0, []byte(nil)})
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "whole", Parent: "s", ParentLength: 6, Now: startTime()}))
	equal(t, "main of one that has all messages", string(session(t, s, "whole").Carryover), "main after 3")
	f := &conversation{s: s, id: "f", said: talk.said[:3:3]}
	f.startAskedRound(t).finish(t, engine.Failed)
	talk.startAskedRound(t).finish(t, engine.Completed)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "g", Parent: "f", ParentLength: 4, Now: startTime()}))
	g := &conversation{s: s, id: "g", said: f.said[:4:4]}
	g.startAskedRound(t).finish(t, engine.Completed)
	for _, x := range []*conversation{talk, f, g} {
		x.check(t)
	}
	ms, err := s.SessionMessages(t.Context(), "g", 0, 99)
	must(t, err)
	var rounds []string
	for _, m := range ms {
		rounds = append(rounds, fmt.Sprintf("%d %s %d %s", m.Position, m.Run, m.Round, m.Status))
	}
	equal(t, "who said what", rounds, []string{
		"0 s-1 0 completed", "1 s-1 0 completed", "2 s-2 0 completed", "3 f-1 0 failed", "4 g-1 1 completed", "5 g-1 1 completed",
	})
}
