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

func baseCases() []testCase {
	return []testCase{
		{"a run with a base has the shared commits and none of the later ones", sharedCommits},
		{"a context of a run with a base has the base's messages up to the shared commit", sharedContexts},
		{"a context that a run with a base creates is not shared", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("x", "1", "one")}})
			f := fork(t, s, w, "f", 1)
			f.append(t, &engine.NodeStarted{Path: "a", Forks: []engine.ContextChange{{ID: "x", Create: true, Body: &convo.Change{Create: true}}}})
			checkContext(t, s, "f", "x", 0, 9)
			f.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("x", "2", "two")}})
			checkContext(t, s, "f", "x", 0, 9, "2")
			checkContext(t, s, "r", "x", 0, 9, "1")
		}},
		{"forks of forks at every commit have the commits before them", forksEverywhere},
		{"a base and its commit must exist", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			for _, b := range []store.Base{{Run: "no", Seq: 1}, {Run: "r", Seq: 2}, {Run: "r", Seq: -1}} {
				checkError(t, s.Create(t.Context(), store.NewRun{ID: "f", At: startTime(), Base: &b}), store.ErrNotFound)
			}
			fork(t, s, w, "f", 1)
			checkError(t, s.Create(t.Context(), store.NewRun{ID: "f", At: startTime(), Base: &store.Base{Run: "r", Seq: 1}}), store.ErrExists)
		}},
		{"a run with a base takes the commit that follows the base's and no other", followsBase},
		{"a run may have a base and share none of its commits", baseWithoutCommits},
		{"a round has no base", roundWithBase},
		{"a context may continue a context of another run", linkedContexts},
		{"a context cannot continue past the messages of another", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "1", "one")}})
			c := newWriter(t, s, "c")
			for _, ch := range []engine.ContextChange{
				{ID: "main", Create: true, Run: "r", Parent: "main", At: 2},
				{ID: "main", Create: true, Run: "r", Parent: "other", At: 1},
				{ID: "main", Create: true, Run: "no", Parent: "main", At: 1},
				{ID: "main", Create: true, Session: "no"},
			} {
				a := c.next(&engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{ch}})
				if err := s.Append(t.Context(), []store.Append{a})[0]; err == nil {
					t.Errorf("%+v was kept", ch)
				}
			}
			c.append(t, &engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Run: "r", Parent: "main", At: 1}}})
			checkContext(t, s, "c", "main", 0, 9, "1")
		}},
		{"a long chain of forks is readable", longChain},
	}
}

// fork creates a run that shares the commits of w up to seq, and returns its writer, which includes the shared
// commits.
func fork(t *testing.T, s Store, w *writer, id string, seq int64) *writer {
	t.Helper()
	must(t, s.Create(t.Context(), store.NewRun{ID: id, Flow: "flow", At: startTime(), Base: &store.Base{Run: w.lease.Run, Seq: seq}}))
	l, err := s.at(startTime()).Acquire(t.Context(), id, "me", time.Hour)
	must(t, err)
	f := &writer{s: s, lease: l, first: 1}
	for _, c := range w.wrote[:seq] {
		c.Run = id
		f.acknowledged(store.Append{Commit: c})
	}
	return f
}

// checkContext checks the messages of a context by their ids, and that each is found.
func checkContext(t *testing.T, s Store, run, context string, from, to int, want ...string) {
	t.Helper()
	ms, err := s.Messages(t.Context(), run, context, from, to)
	must(t, err)
	ids := []string{}
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	equal(t, fmt.Sprintf("messages %d to %d of %s in %s", from, to, context, run), ids, append([]string{}, want...))
	if from > 0 {
		return
	}
	for i, id := range want {
		at, err := s.FindMessage(t.Context(), run, context, id, to)
		must(t, err)
		equal(t, fmt.Sprintf("position of %s in %s of %s", id, context, run), at, i)
	}
	at, err := s.FindMessage(t.Context(), run, context, "none", to)
	must(t, err)
	equal(t, "position of no message", at, -1)
}

func baseWithoutCommits(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "1", "one")}})
	f := fork(t, s, w, "f", 0)
	run, err := s.Run(t.Context(), "f")
	must(t, err)
	equal(t, "base", run.Base, &store.Base{Run: "r", Seq: 0})
	equal(t, "commits and events", []int64{run.Commits, run.Events}, []int64{0, 0})
	f.append(t, &engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Body: &convo.Change{Create: true}}}})
	f.append(t, &engine.NodeCompleted{Path: "b", Contexts: []engine.ContextChange{messageChange("main", "2", "two"), messageChange("x", "3", "three")}})
	g := fork(t, s, f, "g", 1)
	g.append(t, &engine.NodeCompleted{Path: "c", Contexts: []engine.ContextChange{messageChange("main", "4", "four")}})
	s = s.reopen(t)
	for _, x := range []*writer{w, f, g} {
		x.check(t, s)
	}
	checkContext(t, s, "r", "main", 0, 9, "1")
	checkContext(t, s, "f", "main", 0, 9, "2")
	checkContext(t, s, "f", "x", 0, 9, "3")
	checkContext(t, s, "g", "main", 0, 9, "4")
}

// roundWithBase: a round continues its session and must not have a base.
func roundWithBase(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeStarted{Path: "a"})
	newConversation(t, s, "s")
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q", Session: "s", Value: "hello", At: startTime()})
	must(t, err)
	for _, b := range []store.Base{{Run: "r", Seq: 1}, {Run: "r"}, {Run: "no", Seq: 1}} {
		a := firstOfRound(session(t, s, "s"), "round", "q")
		a.Start.Base = &b
		checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrRoundBase)
	}
	if _, err := s.Run(t.Context(), "round"); err == nil {
		t.Error("the round was made all the same")
	}
	must(t, s.Append(t.Context(), []store.Append{firstOfRound(session(t, s, "s"), "round", "q")})[0])
}

func sharedCommits(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	for i := range 8 {
		w.append(t, &engine.NodeStarted{Path: fmt.Sprint("n#", i)},
			&engine.NodeCompleted{Path: fmt.Sprint("n#", i), Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
	}
	f := fork(t, s, w, "f", 5)
	run, err := s.Run(t.Context(), "f")
	must(t, err)
	equal(t, "base", run.Base, &store.Base{Run: "r", Seq: 5})
	equal(t, "commits and events", []int64{run.Commits, run.Events}, []int64{5, 10})
	f.check(t, s)
	f.append(t, &engine.RunForked{From: "r", At: 10, Flow: "flow"})
	f.append(t, &engine.NodeStarted{Path: "n#5"})
	w.append(t, &engine.NodeStarted{Path: "not the fork's"})
	g := fork(t, s, f, "g", 6)
	h := fork(t, s, f, "h", 3) // before f starts
	g.append(t, &engine.NodeStarted{Path: "g"})
	h.append(t, &engine.NodeStarted{Path: "h"})
	s = s.reopen(t)
	for _, x := range []*writer{w, f, g, h} {
		x.check(t, s)
		x.s = s
		x.append(t, &engine.NodeStarted{Path: "after"})
		x.check(t, s)
		for after := range int64(9) {
			sameCommits(t, read(t, s, x.lease.Run, after), x.wrote[min(after, int64(len(x.wrote))):])
		}
	}
	run, err = s.Run(t.Context(), "g")
	must(t, err)
	equal(t, "commits of a fork of a fork", run.Commits, int64(8))
}

func sharedContexts(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "1", "one"), messageChange("side", "s1", "one")}})
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "2", "two")}})
	w.append(t, &engine.NodeStarted{Path: "b", Forks: []engine.ContextChange{{ID: "lane", Create: true, Parent: "main", At: 2}}})
	w.append(t, &engine.NodeCompleted{Path: "b", Contexts: []engine.ContextChange{messageChange("lane", "3", "three"), messageChange("main", "4", "four")}})
	f := fork(t, s, w, "f", 2)
	checkContext(t, s, "f", "main", 0, 99, "1", "2")
	checkContext(t, s, "f", "main", 1, 2, "2")
	checkContext(t, s, "f", "side", 0, 99, "s1")
	checkContext(t, s, "f", "lane", 0, 99)
	f.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "f3", "three")}})
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "5", "five")}})
	checkContext(t, s, "f", "main", 0, 99, "1", "2", "f3")
	checkContext(t, s, "f", "main", 2, 99, "f3")
	checkContext(t, s, "r", "main", 0, 99, "1", "2", "4", "5")

	g := fork(t, s, w, "g", 4)
	g.append(t, &engine.NodeCompleted{Path: "b", Contexts: []engine.ContextChange{messageChange("lane", "g4", "four")}})
	checkContext(t, s, "g", "main", 0, 99, "1", "2", "4")
	checkContext(t, s, "g", "lane", 2, 99, "3", "g4")
	ms, err := s.Messages(t.Context(), "g", "lane", 0, 99)
	must(t, err)
	equal(t, "messages of a lane, which are not its parent's", len(ms), 2)
	at, err := s.FindMessage(t.Context(), "g", "lane", "1", 99)
	must(t, err)
	equal(t, "position of what is its parent's", at, -1)
}

func forksEverywhere(t *testing.T, s Store) {
	// The messages of each run after each commit, by their ids.
	model := map[string][][]string{}
	writers := map[string]*writer{}
	grow := func(w *writer, run string, n int) {
		for i := range n {
			last := model[run][len(model[run])-1]
			if i%3 == 1 {
				w.append(t, &engine.NodeStarted{Path: "quiet"})
			} else {
				id := fmt.Sprint(run, "-", len(w.wrote))
				w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", id, "said")}})
				last = append(slices.Clip(last), id)
			}
			model[run] = append(model[run], last)
		}
	}
	model["r"] = [][]string{{}}
	writers["r"] = newWriter(t, s, "r")
	grow(writers["r"], "r", 7)
	runs := []string{"r"}
	for level := range 3 {
		for _, base := range runs[max(0, len(runs)-4):] {
			for seq := 1 + level; seq < len(model[base]); seq += 2 {
				id := fmt.Sprintf("%s.%d", base, seq)
				writers[id] = fork(t, s, writers[base], id, int64(seq))
				model[id] = append([][]string{}, model[base][:seq+1]...)
				checkContext(t, s, id, "main", 0, 99, model[base][seq]...) // before it adds a message
				grow(writers[id], id, 1+seq%3)
				runs = append(runs, id)
			}
		}
	}
	for _, run := range runs {
		last := model[run][len(model[run])-1]
		checkContext(t, s, run, "main", 0, 99, last...)
		if n := len(last); n > 2 {
			checkContext(t, s, run, "main", 1, n-1, last[1:n-1]...)
		}
		writers[run].check(t, s)
	}
}

func followsBase(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	for range 4 {
		w.append(t, &engine.NodeStarted{Path: "a"}, &engine.NodeStarted{Path: "b"})
	}
	f := fork(t, s, w, "f", 3)
	for _, change := range []func(a *store.Append){
		func(a *store.Append) { a.Commit.Seq++ },
		func(a *store.Append) { a.Commit.Seq-- },
		func(a *store.Append) { a.Commit.Seq, a.Commit.First = 1, 1 },
		func(a *store.Append) { a.Commit.First++ },
		func(a *store.Append) { a.Commit.First-- },
	} {
		a := f.next(&engine.NodeStarted{Path: "bad"})
		change(&a)
		checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSequence)
	}
	f.append(t, &engine.NodeStarted{Path: "good"})
	f.check(t, s)
	w.check(t, s)
}

// linkedContexts: a child, and a child of it, start with the messages of their parents.
func linkedContexts(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	for i := range 3 {
		w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", fmt.Sprint(i), "said")}})
	}
	w.append(t, &engine.NodeStarted{Path: "b", Forks: []engine.ContextChange{{ID: "lane", Create: true, Parent: "main", At: 2}}})
	w.append(t, &engine.NodeCompleted{Path: "b", Contexts: []engine.ContextChange{messageChange("lane", "l", "said")}})
	begin := func(id, parent, context string, at int) *writer {
		x := newWriter(t, s, id)
		x.append(t, &engine.RunStarted{Parallel: 1, Parent: parent, Contexts: []engine.ContextChange{
			{ID: "main", Create: true, Run: parent, Parent: context, At: at, Body: &convo.Change{Create: true}},
		}})
		return x
	}
	c := begin("c", "r", "main", 2)
	checkContext(t, s, "c", "main", 0, 9, "0", "1")
	c.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "c2", "said")}})
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "3", "said")}})
	checkContext(t, s, "c", "main", 0, 9, "0", "1", "c2")
	d := begin("d", "c", "main", 3)
	d.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "d3", "said")}})
	checkContext(t, s, "d", "main", 0, 9, "0", "1", "c2", "d3")
	checkContext(t, s, "d", "main", 1, 3, "1", "c2")
	// A context that starts with a lane has the messages with which the lane started, too.
	begin("e", "r", "lane", 3)
	checkContext(t, s, "e", "main", 0, 9, "0", "1", "l")
	// A fork of a child, and a child of a fork.
	f := fork(t, s, c, "f", 1)
	checkContext(t, s, "f", "main", 0, 9, "0", "1")
	f.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "f2", "said")}})
	checkContext(t, s, "f", "main", 0, 9, "0", "1", "f2")
	g := fork(t, s, w, "g", 3)
	begin("h", "g", "main", 3)
	checkContext(t, s, "h", "main", 0, 9, "0", "1", "2")
	for _, x := range []*writer{w, c, d, f, g} {
		x.check(t, s)
	}
}

// longChain forks each of many runs from the one before.
func longChain(t *testing.T, s Store) {
	const deep = 200
	w := newWriter(t, s, "r")
	var want []string
	for i := range deep {
		id := fmt.Sprint("m", i)
		want = append(want, id)
		w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", id, "said")}})
		w = fork(t, s, w, fmt.Sprint("f", i), int64(i+1))
	}
	checkContext(t, s, w.lease.Run, "main", 0, deep, want...)
	checkContext(t, s, w.lease.Run, "main", 150, 160, want[150:160]...)
	w.check(t, s)
}
