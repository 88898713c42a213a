package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func recoveryCases() []testCase {
	return []testCase{
		{"a run is taken at once from an owner that is known to be dead, and from no other", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			_, err := s.at(startTime()).Seize(t.Context(), "r", "another", "you", time.Hour)
			checkError(t, err, store.ErrOwned)
			w.append(t, &engine.NodeStarted{Path: "b"})
			l, err := s.at(startTime()).Seize(t.Context(), "r", "me", "you", time.Hour)
			must(t, err)
			equal(t, "owner", l.Owner, "you")
			checkError(t, s.Append(t.Context(), []store.Append{w.next(&engine.NodeStarted{Path: "late"})})[0], store.ErrFenced)
			_, err = s.at(startTime()).Seize(t.Context(), "r", "me", "third", time.Hour)
			checkError(t, err, store.ErrOwned)
			_, err = s.at(startTime()).Seize(t.Context(), "none", "me", "you", time.Hour)
			checkError(t, err, store.ErrNotFound)
			w.lease = l
			w.append(t, &engine.NodeStarted{Path: "c"})
			w.check(t, s)
		}},
		{"crashes are counted until the next commit that does more than announce effects", countCrashes},
		{"a run that only waits, or was released, has not crashed", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			must(t, s.Release(t.Context(), w.lease))
			l, err := s.at(startTime()).Acquire(t.Context(), "r", "you", time.Hour)
			must(t, err)
			equal(t, "crashes of a run that was given back", l.Crashes, 0)
			equal(t, "a run that was given back is taken over", l.TakenOver, false)
			w.lease = l
			a := w.next(&engine.NodeStarted{Path: "b"})
			a.Head.Status = engine.Paused
			must(t, s.Append(t.Context(), []store.Append{a})[0])
			l, err = s.at(startTime()).Seize(t.Context(), "r", "you", "third", time.Hour)
			must(t, err)
			equal(t, "crashes of a run that waited", l.Crashes, 0)
			equal(t, "a run that waited is taken over", l.TakenOver, false)
			w = newWriter(t, s, "timer")
			a = w.next(&engine.NodeStarted{Path: "a"})
			a.Head.Activity, a.Head.Due = engine.AwaitsTimers, startTime().UnixMilli()
			must(t, s.Append(t.Context(), []store.Append{a})[0])
			l, err = s.at(startTime()).Seize(t.Context(), "timer", "me", "you", time.Hour)
			must(t, err)
			equal(t, "crashes of a run that waited for a timer", l.Crashes, 0)
		}},
		{"unfinished runs are listed by age, with their owners", unfinishedRuns},
		{"runs with messages in their inbox are unfinished", func(t *testing.T, s Store) {
			for i, status := range []engine.Status{engine.Paused, engine.Completed} {
				w := newWriter(t, s, fmt.Sprint("r", i))
				a := w.next(&engine.NodeStarted{Path: "a"})
				a.Head.Status, a.Release = status, true
				must(t, s.Append(t.Context(), []store.Append{a})[0])
				must(t, s.Post(t.Context(), store.Post{Run: w.lease.Run, Kind: "cancel", At: startTime()}))
			}
			list, err := s.at(startTime()).Unfinished(t.Context(), "", 0, 10)
			must(t, err)
			if len(list) != 1 || list[0].Run != "r0" || !list[0].Posts {
				t.Errorf("got %+v, want r0 with posts", list)
			}
		}},
		{"sessions with waiting messages or a round without a commit are pending", pendingSessions},
	}
}

func countCrashes(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeStarted{Path: "a"})
	crash := func(owner string) store.Lease {
		t.Helper()
		run, err := s.Run(t.Context(), "r")
		must(t, err)
		l, err := s.at(startTime()).Seize(t.Context(), "r", run.Owner, owner, time.Hour)
		must(t, err)
		after, err := s.Run(t.Context(), "r")
		must(t, err)
		equal(t, "crashes of the run and its lease", after.Crashes, l.Crashes)
		equal(t, "the run is taken over", l.TakenOver, true)
		return l
	}
	for i := 1; i <= 3; i++ {
		w.lease = crash(fmt.Sprint("owner ", i))
		equal(t, "crashes", w.lease.Crashes, i)
		a := w.next(&engine.EffectStarted{Key: "a/x#1"})
		a.AnnouncesOnly = true
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		w.acknowledged(a)
	}
	w.append(t, &engine.NodeStarted{Path: "b"})
	equal(t, "crashes after a commit", crash("next").Crashes, 1)
	l, err := s.at(startTime().Add(2*time.Hour)).Acquire(t.Context(), "r", "late", time.Hour)
	must(t, err)
	equal(t, "crashes where a lease ran out", l.Crashes, 2)
	equal(t, "a run whose lease ran out is taken over", l.TakenOver, true)
	again, err := s.at(startTime()).Acquire(t.Context(), "r", "late", time.Hour)
	must(t, err)
	equal(t, "crashes of a lease acquired again", again.Crashes, 2)
	equal(t, "a run that is acquired again is taken over", again.TakenOver, false)
}

func unfinishedRuns(t *testing.T, s Store) {
	at := func(n int) time.Time { return startTime().Add(time.Duration(n) * time.Minute) }
	type unfinished struct {
		status   engine.Status
		due      int
		free     bool
		activity engine.Activity
	}
	for i, u := range []unfinished{
		{engine.Running, 0, false, 0},
		{engine.Running, 0, true, engine.AwaitsChildren},
		{engine.Paused, 0, true, 0},
		{engine.Running, 10, true, engine.AwaitsTimers},
		{engine.Running, 20, false, engine.AwaitsTimers},
		{engine.Completed, 0, true, 0},
		{engine.Failed, 0, true, 0},
		{engine.Cancelled, 0, true, 0},
	} {
		w := newWriter(t, s, fmt.Sprint("r", i))
		a := w.next(&engine.NodeStarted{Path: "a"})
		a.Head.Status, a.Head.Activity, a.Release = u.status, u.activity, u.free
		if u.due > 0 {
			a.Head.Due = at(u.due).UnixMilli()
		}
		must(t, s.Append(t.Context(), []store.Append{a})[0])
	}
	must(t, s.Create(t.Context(), store.NewRun{ID: "never", Flow: "flow", At: startTime()})) // without a commit
	names := func(except string, now, limit int) (out []string) {
		t.Helper()
		var after int64
		for {
			list, err := s.at(at(now)).Unfinished(t.Context(), except, after, limit)
			must(t, err)
			for i := range list {
				out = append(out, list[i].Run+" "+list[i].Owner)
				after = list[i].Number
			}
			if len(list) < limit {
				return out
			}
		}
	}
	equal(t, "now", names("", 0, 10), []string{"r0 me", "r1 "})
	equal(t, "one at a time", names("", 0, 1), []string{"r0 me", "r1 "})
	equal(t, "of others", names("me", 0, 10), []string{"r1 "})
	equal(t, "when the first timer is due", names("", 10, 10), []string{"r0 me", "r1 ", "r3 "})
	equal(t, "later", names("", 20, 10), []string{"r0 me", "r1 ", "r3 ", "r4 me"})
}

func pendingSessions(t *testing.T, s Store) {
	pending := func(want ...string) {
		t.Helper()
		got, err := s.PendingSessions(t.Context(), "", 10)
		must(t, err)
		equal(t, "pending sessions", fmt.Sprint(got), fmt.Sprint(want))
	}
	for _, id := range []string{"s1", "s2", "s3"} {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, User: id, Flow: "f", Now: startTime()}))
	}
	pending()
	for _, id := range []string{"s3", "s1"} {
		_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "m" + id, Session: id, Value: "hello", At: startTime()})
		must(t, err)
	}
	pending("s1", "s3")
	page, err := s.PendingSessions(t.Context(), "s1", 1)
	must(t, err)
	equal(t, "page", page, []string{"s3"})
	a := firstOfRound(session(t, s, "s1"), "r1", "ms1")
	a.Head.Status, a.Head.Activity = engine.Running, engine.Executing
	must(t, s.Append(t.Context(), []store.Append{a})[0])
	list, err := s.at(startTime()).Unfinished(t.Context(), "", 0, 10)
	must(t, err)
	if len(list) != 1 || list[0].Run != "r1" || list[0].Session != "s1" || list[0].Status != engine.Running {
		t.Errorf("got %+v, want the round that was started", list)
	}
	pending("s3")
	must(t, s.RemoveQueued(t.Context(), "ms3"))
	pending()
}
