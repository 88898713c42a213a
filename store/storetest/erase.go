package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func erasureCases() []testCase {
	return []testCase{
		{"a session is deleted with its rounds, their children and forks", deleteSession},
		{"a run is deleted with its tree and forks", deleteRun},
		{"a user is deleted with all that is the user's", deleteUser},
		{"learned code goes with its user and with the runs that it came from, and no other", deleteLearned},
		{"what a live process works on is not deleted unless forced", deleteOwned},
		{"what was deleted can be made again, and takes no late commits", madeAgain},
		{"sessions are pruned by age, by number and as they expire", prune},
		{"what others share a past with is not pruned", pruneShared},
	}
}

// lapsed is when no lease of a test holds any more.
func lapsed() store.Erasure { return store.Erasure{Now: epoch().Add(2 * time.Hour)} }

// child makes a child run of w's that begins with its main context.
func child(t *testing.T, s Store, w *writer, id string, at int) *writer {
	t.Helper()
	must(t, s.Create(t.Context(), store.NewRun{ID: id, Flow: "flow", Parent: w.lease.Run, At: epoch()}))
	l, err := s.Acquire(t.Context(), id, "me", time.Hour, epoch())
	must(t, err)
	c := &writer{s: s, lease: l, first: 1}
	c.append(t, &engine.RunStarted{Parallel: 1, Parent: w.lease.Run, Contexts: []engine.ContextChange{
		{ID: "main", Create: true, Run: w.lease.Run, Parent: "main", At: at, Body: &convo.Change{Create: true}},
	}})
	c.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{said("main", id, "said by "+id+", long enough to be shared")}})
	return c
}

func runIDs(t *testing.T, s Store) (ids []string) {
	t.Helper()
	ids, err := s.Find(t.Context(), "")
	must(t, err)
	return ids
}

func deleteSession(t *testing.T, s Store) {
	kept := newTalk(t, s, "kept")
	kept.round(t).finish(t, engine.Completed)
	talk := newTalk(t, s, "s")
	for range 2 {
		talk.round(t).finish(t, engine.Completed)
	}
	c := child(t, s, &talk.runs[0].writer, "child", 2)
	f := fork(t, s, c, "fork-of-child", 2)
	child(t, s, f, "child-of-fork", 2)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "fork", Parent: "s", At: 2, Now: epoch()}))
	(&talker{s: s, id: "fork", said: talk.said[:2:2]}).round(t)
	_, err := s.Enqueue(t.Context(), store.Queued{ID: "waiting", Session: "s", At: epoch()})
	must(t, err)
	must(t, s.Post(t.Context(), store.Post{Run: "s-1", Kind: "answer", At: epoch()}))
	must(t, s.SaveCheckpoint(t.Context(), store.Checkpoint{Run: "s-1", Seq: 1}))
	must(t, s.CachePut(t.Context(), "k", "v", time.Time{}))

	_, err = s.DeleteSession(t.Context(), "no", lapsed())
	is(t, err, store.ErrNotFound)
	dry := lapsed()
	dry.Dry = true
	for _, e := range []store.Erasure{dry, lapsed()} {
		gone, err := s.DeleteSession(t.Context(), "s", e)
		must(t, err)
		equal(t, "deleted", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{2, 6, 4 + 1 + 1 + 1})
		equal(t, "with it", gone.Forks, []store.Tree{{Session: "fork"}, {Run: "fork-of-child"}})
	}
	equal(t, "runs left", runIDs(t, s), []string{"kept-1"})
	for _, id := range []string{"s", "fork"} {
		_, err := s.Session(t.Context(), id)
		is(t, err, store.ErrNotFound)
	}
	posts, err := s.Inbox(t.Context(), "s-1")
	must(t, err)
	equal(t, "posts", len(posts), 0)
	_, cached, err := s.CacheGet(t.Context(), "k", epoch())
	must(t, err)
	equal(t, "cached", cached, false)
	kept.check(t)
	kept.round(t).finish(t, engine.Completed)
	kept.check(t)
}

func deleteRun(t *testing.T, s Store) {
	w, other := newWriter(t, s, "r"), newWriter(t, s, "other")
	for _, x := range []*writer{w, other} {
		for i := range 3 {
			x.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{said("main", fmt.Sprint(i), "what both say, long enough to be shared")}})
		}
	}
	c := child(t, s, w, "c", 3)
	child(t, s, c, "cc", 4)
	fork(t, s, fork(t, s, w, "f", 2), "ff", 1)
	talk := newTalk(t, s, "s")
	talk.round(t).finish(t, engine.Completed)
	child(t, s, &talk.runs[0].writer, "sc", 1)
	for _, id := range []string{"c", "cc", "s-1", "sc"} {
		_, err := s.DeleteRun(t.Context(), id, lapsed())
		is(t, err, store.ErrPart)
	}
	_, err := s.DeleteRun(t.Context(), "no", lapsed())
	is(t, err, store.ErrNotFound)
	gone, err := s.DeleteRun(t.Context(), "ff", lapsed())
	must(t, err)
	equal(t, "a fork alone", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{0, 1, 0})
	gone, err = s.DeleteRun(t.Context(), "r", lapsed())
	must(t, err)
	equal(t, "deleted", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{0, 4, 5})
	equal(t, "runs left", runIDs(t, s), []string{"other", "s-1", "sc"})
	other.check(t, s)
	has(t, s, "other", "main", 0, 9, "0", "1", "2")
	talk.check(t)
	runs, err := s.Runs(t.Context(), store.Filter{Before: "s-1"})
	must(t, err)
	equal(t, "listed before one that is left", len(runs) == 1 && runs[0].ID == "other", true)
}

func deleteUser(t *testing.T, s Store) {
	for _, n := range []store.NewRun{{ID: "mine", User: "u"}, {ID: "yours", User: "v"}, {ID: "nobody's"}} {
		n.At = epoch()
		must(t, s.Create(t.Context(), n))
	}
	talk := newTalk(t, s, "s") // of u
	talk.round(t).finish(t, engine.Completed)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "y", User: "v", Flow: "f", Now: epoch()}))
	must(t, s.Create(t.Context(), store.NewRun{ID: "forked", User: "v", At: epoch(), Base: &store.Base{Run: "s-1", Seq: 1}}))
	for _, who := range []string{"", "w", "u", "u"} {
		gone, err := s.DeleteUser(t.Context(), who, lapsed())
		switch who {
		case "":
			is(t, err, store.ErrNotFound)
			continue
		case "w":
			equal(t, "nobody's", []int{gone.Sessions, gone.Runs}, []int{0, 0})
		}
		must(t, err)
	}
	equal(t, "runs left", runIDs(t, s), []string{"nobody's", "yours"})
	_, err := s.FindSession(t.Context(), "u", "f", "")
	is(t, err, store.ErrNotFound)
	session(t, s, "y")
}

func deleteOwned(t *testing.T, s Store) {
	talk := newTalk(t, s, "s")
	r := talk.round(t)
	now := store.Erasure{Now: epoch().Add(time.Minute)}
	_, err := s.DeleteSession(t.Context(), "s", now)
	is(t, err, store.ErrOwned)
	_, err = s.DeleteUser(t.Context(), "u", now)
	is(t, err, store.ErrOwned)
	_, err = s.PruneSessions(t.Context(), store.Prune{Now: now.Now, Older: time.Millisecond})
	must(t, err)
	talk.check(t)
	must(t, s.Release(t.Context(), r.lease))
	w := newWriter(t, s, "w")
	_, err = s.DeleteRun(t.Context(), "w", now)
	is(t, err, store.ErrOwned)
	now.Force = true
	_, err = s.DeleteRun(t.Context(), "w", now)
	must(t, err)
	is(t, s.Append(t.Context(), []store.Append{w.next(&engine.NodeStarted{Path: "a"})})[0], store.ErrNotFound)
	now.Force = false
	_, err = s.DeleteSession(t.Context(), "s", now)
	must(t, err)
}

func madeAgain(t *testing.T, s Store) {
	old := newTalk(t, s, "s")
	late := old.round(t)
	w := newWriter(t, s, "w")
	w.append(t, &engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
	_, err := s.DeleteSession(t.Context(), "s", lapsed())
	must(t, err)
	_, err = s.DeleteRun(t.Context(), "w", lapsed())
	must(t, err)
	other := newWriter(t, s, "x") // must not be taken for one that is gone
	group := []store.Append{
		late.next(&engine.NodeStarted{Path: "late"}), w.next(&engine.NodeStarted{Path: "late"}), other.next(&engine.NodeStarted{Path: "a"}),
	}
	errs := s.Append(t.Context(), group)
	is(t, errs[0], store.ErrNotFound)
	is(t, errs[1], store.ErrNotFound)
	must(t, errs[2])
	other.kept(group[2])
	other.check(t, s)
	again := newTalk(t, s, "s")
	again.round(t).finish(t, engine.Completed)
	again.check(t)
	w = newWriter(t, s, "w")
	w.append(t, &engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
	w.check(t, s)
}

func prune(t *testing.T, s Store) {
	day := func(n int) time.Time { return epoch().AddDate(0, 0, n) }
	for i := range 6 {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: fmt.Sprint("a", i), User: "a", Flow: "f", Now: day(i)}))
	}
	for i, flow := range []string{"f", "g"} {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: fmt.Sprint("b", i), User: "b", Flow: flow, Now: day(3 * i), Expires: day(5 + i)}))
	}
	pruned := func(p store.Prune, want ...string) {
		t.Helper()
		ids := func() (ids []string) {
			all, err := s.Sessions(t.Context(), store.SessionFilter{})
			must(t, err)
			for _, x := range all {
				ids = append(ids, x.ID)
			}
			return ids
		}
		before := ids()
		p.Dry = true
		would, err := s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "a dry run leaves all", ids(), before)
		p.Dry = false
		did, err := s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "a dry run says how many", would.Sessions, did.Sessions)
		gone := []string{}
		after := ids()
		for _, id := range before {
			if !slices.Contains(after, id) {
				gone = append(gone, id)
			}
		}
		slices.Sort(gone)
		equal(t, fmt.Sprintf("pruned by %+v", p), gone, append([]string{}, want...))
	}
	pruned(store.Prune{Now: day(4)})
	pruned(store.Prune{Now: day(5)}, "b0")
	pruned(store.Prune{Now: day(5), Older: 4 * 24 * time.Hour}, "a0")
	pruned(store.Prune{Now: day(5), User: "b", Keep: 1})
	pruned(store.Prune{Now: day(5), Keep: 3}, "a1", "a2")
	pruned(store.Prune{Now: day(9), Flow: "f", Older: 4 * 24 * time.Hour}, "a3", "a4")
	pruned(store.Prune{Now: day(9)}, "b1")
	pruned(store.Prune{Now: day(9), Older: time.Hour, Keep: 1}, "a5")
}

func pruneShared(t *testing.T, s Store) {
	old := newTalk(t, s, "s")
	r := old.round(t)
	r.finish(t, engine.Completed)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "f", Parent: "s", At: 1, Now: epoch().AddDate(0, 1, 0)}))
	p := store.Prune{Now: epoch().AddDate(0, 1, 1), Older: 7 * 24 * time.Hour}
	gone, err := s.PruneSessions(t.Context(), p)
	must(t, err)
	equal(t, "pruned", gone.Sessions, 0)
	equal(t, "kept", gone.Kept, []store.Kept{{Session: "s", Forks: []store.Tree{{Session: "f"}}}})
	p.Now = epoch().AddDate(1, 0, 0)
	fork(t, s, &r.writer, "run", 1)
	dry := p
	dry.Dry = true
	for _, p := range []store.Prune{dry, p} {
		gone, err = s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "kept", gone.Kept, []store.Kept{{Session: "s", Forks: []store.Tree{{Run: "run"}}}})
	}
	equal(t, "pruned", []int{gone.Sessions, gone.Runs}, []int{1, 0}) // the fork, not what the run shares
	_, err = s.DeleteRun(t.Context(), "run", store.Erasure{Now: p.Now})
	must(t, err)
	gone, err = s.PruneSessions(t.Context(), p)
	must(t, err)
	equal(t, "pruned", []int{gone.Sessions, gone.Runs}, []int{1, 1})
}
