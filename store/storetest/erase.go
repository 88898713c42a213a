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
		{"a user is deleted with all data of the user", deleteUser},
		{"learned code is deleted with its user or the runs that it came from", deleteLearned},
		{"a run that a live process executes is deleted only if forced", deleteOwned},
		{"a deleted run can be created again, and refuses late commits", recreateDeleted},
		{"sessions are pruned by age, by number and as they expire", prune},
		{"a session with forks is not pruned", pruneShared},
		{"a session whose round waits is not pruned before it expires", pruneWaiting},
		{"a deferred compaction leaves no rows, and is done once", deferCompaction},
	}
}

// afterLeasesExpired returns a time at which no lease of a test is valid.
func afterLeasesExpired() store.DeleteOptions {
	return store.DeleteOptions{Now: startTime().Add(2 * time.Hour)}
}

// child creates a child run of w's that starts with its main context.
func child(t *testing.T, s Store, w *writer, id string, at int) *writer {
	t.Helper()
	must(t, s.Create(t.Context(), store.NewRun{ID: id, Flow: "flow", Parent: w.lease.Run, At: startTime()}))
	l, err := s.at(startTime()).Acquire(t.Context(), id, "me", time.Hour)
	must(t, err)
	c := &writer{s: s, lease: l, first: 1}
	c.append(t, &engine.RunStarted{Parallel: 1, Parent: w.lease.Run, Contexts: []engine.ContextChange{
		{ID: "main", Create: true, Run: w.lease.Run, Parent: "main", At: at, Body: &convo.Change{Create: true}},
	}})
	c.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", id, "said by "+id+", long enough to be shared")}})
	return c
}

func runIDs(t *testing.T, s Store) (ids []string) {
	t.Helper()
	ids, err := s.FindRunIDs(t.Context(), "")
	must(t, err)
	return ids
}

func deleteSession(t *testing.T, s Store) {
	kept := newConversation(t, s, "kept")
	kept.startAskedRound(t).finish(t, engine.Completed)
	talk := newConversation(t, s, "s")
	for range 2 {
		talk.startAskedRound(t).finish(t, engine.Completed)
	}
	c := child(t, s, &talk.runs[0].writer, "child", 2)
	f := fork(t, s, c, "fork-of-child", 2)
	child(t, s, f, "child-of-fork", 2)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "fork", Parent: "s", ParentLength: 2, Now: startTime()}))
	(&conversation{s: s, id: "fork", said: talk.said[:2:2]}).startAskedRound(t)
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "waiting", Session: "s", At: startTime()})
	must(t, err)
	must(t, s.Post(t.Context(), store.Post{Run: "s-1", Kind: "answer", At: startTime()}))
	must(t, s.SaveCheckpoint(t.Context(), store.Checkpoint{Run: "s-1", Seq: 1}))
	keptBy := map[string]bool{} // by key: whether the entry must be kept
	for user, kept := range map[string]bool{"": false, "ada": true, "a/b": true, "%": true} {
		keptBy[store.CachePrefixOf(user)+"k"] = kept
	}
	keptBy["shared/k"], keptBy[store.LearnedCodePrefixOf("ada")+"f/k"] = false, true
	for key := range keptBy {
		must(t, s.CachePut(t.Context(), key, "v", time.Time{}))
	}

	_, err = s.DeleteSession(t.Context(), "no", afterLeasesExpired())
	checkError(t, err, store.ErrNotFound)
	dry := afterLeasesExpired()
	dry.DryRun = true
	for _, e := range []store.DeleteOptions{dry, afterLeasesExpired()} {
		gone, err := s.DeleteSession(t.Context(), "s", e)
		must(t, err)
		equal(t, "deleted", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{2, 6, 4 + 1 + 1 + 1})
		equal(t, "with it", gone.Forks, []store.Tree{{Session: "fork"}, {Run: "fork-of-child"}})
		slices.Sort(gone.RootRuns)
		equal(t, "root runs", gone.RootRuns, []string{"fork-1", "fork-of-child", "s-1", "s-2"})
	}
	equal(t, "runs left", runIDs(t, s), []string{"kept-1"})
	for _, id := range []string{"s", "fork"} {
		_, err := s.Session(t.Context(), id)
		checkError(t, err, store.ErrNotFound)
	}
	posts, err := s.Inbox(t.Context(), "s-1")
	must(t, err)
	equal(t, "posts", len(posts), 0)
	for key, want := range keptBy {
		_, cached, err := s.CacheGet(t.Context(), key, startTime())
		must(t, err)
		equal(t, "cached "+key, cached, want)
	}
	kept.check(t)
	kept.startAskedRound(t).finish(t, engine.Completed)
	kept.check(t)
}

func deleteRun(t *testing.T, s Store) {
	w, other := newWriter(t, s, "r"), newWriter(t, s, "other")
	for _, x := range []*writer{w, other} {
		for i := range 3 {
			x.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", fmt.Sprint(i), "what both say, long enough to be shared")}})
		}
	}
	c := child(t, s, w, "c", 3)
	child(t, s, c, "cc", 4)
	fork(t, s, fork(t, s, w, "f", 2), "ff", 1)
	talk := newConversation(t, s, "s")
	talk.startAskedRound(t).finish(t, engine.Completed)
	child(t, s, &talk.runs[0].writer, "sc", 1)
	for _, id := range []string{"c", "cc", "s-1", "sc"} {
		_, err := s.DeleteRun(t.Context(), id, afterLeasesExpired())
		checkError(t, err, store.ErrNotRoot)
	}
	_, err := s.DeleteRun(t.Context(), "no", afterLeasesExpired())
	checkError(t, err, store.ErrNotFound)
	gone, err := s.DeleteRun(t.Context(), "ff", afterLeasesExpired())
	must(t, err)
	equal(t, "a fork alone", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{0, 1, 0})
	equal(t, "root runs of a fork alone", gone.RootRuns, []string{"ff"})
	gone, err = s.DeleteRun(t.Context(), "r", afterLeasesExpired())
	must(t, err)
	equal(t, "deleted", []int{gone.Sessions, gone.Runs, gone.Messages}, []int{0, 4, 5})
	equal(t, "runs left", runIDs(t, s), []string{"other", "s-1", "sc"})
	other.check(t, s)
	checkContext(t, s, "other", "main", 0, 9, "0", "1", "2")
	talk.check(t)
	runs, err := s.Runs(t.Context(), store.Filter{Before: "s-1"})
	must(t, err)
	equal(t, "listed before one that is left", len(runs) == 1 && runs[0].ID == "other", true)
}

func deleteUser(t *testing.T, s Store) {
	for _, n := range []store.NewRun{{ID: "mine", User: "u"}, {ID: "yours", User: "v"}, {ID: "nobody's"}} {
		n.At = startTime()
		must(t, s.Create(t.Context(), n))
	}
	talk := newConversation(t, s, "s") // of u
	talk.startAskedRound(t).finish(t, engine.Completed)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "y", User: "v", Flow: "f", Now: startTime()}))
	must(t, s.Create(t.Context(), store.NewRun{ID: "forked", User: "v", At: startTime(), Base: &store.Base{Run: "s-1", Seq: 1}}))
	for _, who := range []string{"", "w", "u", "u"} {
		gone, err := s.DeleteUser(t.Context(), who, afterLeasesExpired())
		switch who {
		case "":
			checkError(t, err, store.ErrNotFound)
			continue
		case "w":
			equal(t, "nobody's", []int{gone.Sessions, gone.Runs}, []int{0, 0})
		}
		must(t, err)
	}
	equal(t, "runs left", runIDs(t, s), []string{"nobody's", "yours"})
	_, err := s.FindSession(t.Context(), "u", "f", "")
	checkError(t, err, store.ErrNotFound)
	session(t, s, "y")
}

func deleteOwned(t *testing.T, s Store) {
	talk := newConversation(t, s, "s")
	r := talk.startAskedRound(t)
	now := store.DeleteOptions{Now: startTime().Add(time.Minute)}
	_, err := s.DeleteSession(t.Context(), "s", now)
	checkError(t, err, store.ErrOwned)
	_, err = s.DeleteUser(t.Context(), "u", now)
	checkError(t, err, store.ErrOwned)
	_, err = s.PruneSessions(t.Context(), store.PruneOptions{Now: now.Now, OlderThan: time.Millisecond})
	must(t, err)
	talk.check(t)
	must(t, s.Release(t.Context(), r.lease))
	w := newWriter(t, s, "w")
	_, err = s.DeleteRun(t.Context(), "w", now)
	checkError(t, err, store.ErrOwned)
	now.Force = true
	_, err = s.DeleteRun(t.Context(), "w", now)
	must(t, err)
	checkError(t, s.Append(t.Context(), []store.Append{w.next(&engine.NodeStarted{Path: "a"})})[0], store.ErrNotFound)
	now.Force = false
	_, err = s.DeleteSession(t.Context(), "s", now)
	must(t, err)
}

func recreateDeleted(t *testing.T, s Store) {
	old := newConversation(t, s, "s")
	late := old.startAskedRound(t)
	w := newWriter(t, s, "w")
	w.append(t, &engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
	_, err := s.DeleteSession(t.Context(), "s", afterLeasesExpired())
	must(t, err)
	_, err = s.DeleteRun(t.Context(), "w", afterLeasesExpired())
	must(t, err)
	other := newWriter(t, s, "x") // must not be treated as a deleted one
	group := []store.Append{
		late.next(&engine.NodeStarted{Path: "late"}), w.next(&engine.NodeStarted{Path: "late"}), other.next(&engine.NodeStarted{Path: "a"}),
	}
	errs := s.Append(t.Context(), group)
	checkError(t, errs[0], store.ErrNotFound)
	checkError(t, errs[1], store.ErrNotFound)
	must(t, errs[2])
	other.acknowledged(group[2])
	other.check(t, s)
	again := newConversation(t, s, "s")
	again.startAskedRound(t).finish(t, engine.Completed)
	again.check(t)
	w = newWriter(t, s, "w")
	w.append(t, &engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
	w.check(t, s)
}

func prune(t *testing.T, s Store) {
	day := func(n int) time.Time { return startTime().AddDate(0, 0, n) }
	for i := range 6 {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: fmt.Sprint("a", i), User: "a", Flow: "f", Now: day(i)}))
	}
	for i, flow := range []string{"f", "g"} {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: fmt.Sprint("b", i), User: "b", Flow: flow, Now: day(3 * i), Expires: day(5 + i)}))
	}
	pruned := func(p store.PruneOptions, want ...string) {
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
		p.DryRun = true
		would, err := s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "a dry run leaves all", ids(), before)
		p.DryRun = false
		did, err := s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "a dry run says how many", would.Sessions, did.Sessions)
		slices.Sort(would.RootRuns)
		slices.Sort(did.RootRuns)
		equal(t, "a dry run lists the same root runs", would.RootRuns, did.RootRuns)
		equal(t, "root runs of single rounds", len(did.RootRuns), did.Runs)
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
	pruned(store.PruneOptions{Now: day(4)})
	pruned(store.PruneOptions{Now: day(5)}, "b0")
	pruned(store.PruneOptions{Now: day(5), OlderThan: 4 * 24 * time.Hour}, "a0")
	pruned(store.PruneOptions{Now: day(5), User: "b", Keep: 1})
	pruned(store.PruneOptions{Now: day(5), Keep: 3}, "a1", "a2")
	pruned(store.PruneOptions{Now: day(9), Flow: "f", OlderThan: 4 * 24 * time.Hour}, "a3", "a4")
	pruned(store.PruneOptions{Now: day(9)}, "b1")
	pruned(store.PruneOptions{Now: day(9), OlderThan: time.Hour, Keep: 1}, "a5")
}

// pruneWaiting prunes sessions whose round waits for an answer or a timer, is interrupted, or has ended.
func pruneWaiting(t *testing.T, s Store) {
	heads := map[string]store.Head{
		"asks":        {Status: engine.Paused, Waiting: []engine.Interrupt{{ID: "n:ask#1", Kind: engine.AwaitInput}}},
		"asks still":  {Status: engine.Running, Activity: engine.Executing, Waiting: []engine.Interrupt{{ID: "n:ask#1", Kind: engine.AwaitInput}}},
		"sleeps":      {Status: engine.Running, Due: startTime().AddDate(0, 2, 0).UnixMilli()},
		"paused":      {Status: engine.Paused},
		"interrupted": {Status: engine.Running, Activity: engine.Executing},
	}
	names := []string{"asks", "asks still", "interrupted", "paused", "sleeps"}
	for _, name := range names {
		r := newConversation(t, s, name).startAskedRound(t)
		a := r.next(&engine.NodeWaiting{Path: "n"})
		a.Head = heads[name]
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		r.acknowledged(a)
	}
	newConversation(t, s, "ended").startAskedRound(t).finish(t, engine.Completed)
	left := func() (ids []string) {
		all, err := s.Sessions(t.Context(), store.SessionFilter{})
		must(t, err)
		for _, x := range all {
			ids = append(ids, x.ID)
		}
		slices.Sort(ids)
		return ids
	}
	late := startTime().AddDate(0, 1, 0)
	for _, p := range []store.PruneOptions{{Now: late, OlderThan: time.Hour, DryRun: true}, {Now: late, OlderThan: time.Hour}} {
		gone, err := s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "pruned", gone.Sessions, 2)
	}
	waiting := []string{"asks", "asks still", "paused", "sleeps"}
	equal(t, "left", left(), waiting)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "new", User: "u", Flow: "f", Now: late}))
	_, err := s.PruneSessions(t.Context(), store.PruneOptions{Now: late, Keep: 1})
	must(t, err)
	equal(t, "left", left(), append([]string{"asks", "asks still", "new"}, waiting[2:]...))
	must(t, s.ExpireSession(t.Context(), "asks", late))
	_, err = s.PruneSessions(t.Context(), store.PruneOptions{Now: late})
	must(t, err)
	equal(t, "left", left(), []string{"asks still", "new", "paused", "sleeps"})
}

func pruneShared(t *testing.T, s Store) {
	old := newConversation(t, s, "s")
	r := old.startAskedRound(t)
	r.finish(t, engine.Completed)
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "f", Parent: "s", ParentLength: 1, Now: startTime().AddDate(0, 1, 0)}))
	p := store.PruneOptions{Now: startTime().AddDate(0, 1, 1), OlderThan: 7 * 24 * time.Hour}
	gone, err := s.PruneSessions(t.Context(), p)
	must(t, err)
	equal(t, "pruned", gone.Sessions, 0)
	equal(t, "kept", gone.Kept, []store.KeptSession{{Session: "s", Forks: []store.Tree{{Session: "f"}}}})
	p.Now = startTime().AddDate(1, 0, 0)
	fork(t, s, &r.writer, "run", 1)
	dry := p
	dry.DryRun = true
	for _, p := range []store.PruneOptions{dry, p} {
		gone, err = s.PruneSessions(t.Context(), p)
		must(t, err)
		equal(t, "kept", gone.Kept, []store.KeptSession{{Session: "s", Forks: []store.Tree{{Run: "run"}}}})
	}
	equal(t, "pruned", []int{gone.Sessions, gone.Runs}, []int{1, 0}) // the fork, not the shared commits
	_, err = s.DeleteRun(t.Context(), "run", store.DeleteOptions{Now: p.Now})
	must(t, err)
	gone, err = s.PruneSessions(t.Context(), p)
	must(t, err)
	equal(t, "pruned", []int{gone.Sessions, gone.Runs}, []int{1, 1})
}

func deferCompaction(t *testing.T, s Store) {
	done, err := s.Compact(t.Context())
	must(t, err)
	equal(t, "nothing to compact", done, false)
	newConversation(t, s, "s").startAskedRound(t).finish(t, engine.Completed)
	o := afterLeasesExpired()
	o.DeferCompaction = true
	gone, err := s.DeleteSession(t.Context(), "s", o)
	must(t, err)
	equal(t, "deleted", gone.Sessions, 1)
	_, err = s.Session(t.Context(), "s")
	checkError(t, err, store.ErrNotFound)
	done, err = s.Compact(t.Context())
	must(t, err)
	equal(t, "traces are reported if there are any", gone.Traces, done)
	done, err = s.Compact(t.Context())
	must(t, err)
	equal(t, "compacted again", done, false)
}
