package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func journalCases() []testCase {
	return []testCase{
		{"commits are read as they were appended", commitsComeBack},
		{"an iteration may stop early and start again", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			for range 3 {
				w.append(t, &engine.NodeStarted{Path: "a"})
			}
			for c, err := range s.Commits(t.Context(), "r", 0) {
				must(t, err)
				equal(t, "seq", c.Seq, int64(1))
				break
			}
			w.check(t, s)
		}},
		{"appending continues during reads", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			for range 5 {
				w.append(t, &engine.NodeStarted{Path: "a"})
			}
			for c, err := range s.Commits(t.Context(), "r", 0) {
				must(t, err)
				if c.Seq <= 5 {
					w.append(t, &engine.NodeStarted{Path: "b"})
				}
			}
			w.check(t, s)
		}},
		{"a group of many runs is appended at once", groupOfRuns},
		{"a group may hold several commits of one run", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			var group []store.Append
			for i := range 4 {
				a := w.next(&engine.NodeStarted{Path: fmt.Sprint("n", i)})
				group = append(group, a)
				w.acknowledged(a)
			}
			for _, err := range s.Append(t.Context(), group) {
				must(t, err)
			}
			w.check(t, s)
		}},
		{"an empty group is no error", func(t *testing.T, s Store) {
			equal(t, "errors", len(s.Append(t.Context(), nil)), 0)
		}},
		{"runs append from many goroutines", concurrentAppends},
		{"commits survive reopening", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			for i := range 40 {
				w.append(t, &engine.NodeCompleted{Path: fmt.Sprint("n#", i), Outputs: engine.Values{{Name: "out", Value: "a text that is long enough to be shared"}}})
			}
			s = reopened(t, s)
			w.check(t, s)
			w.s = s
			w.append(t, &engine.NodeStarted{Path: "after"})
			w.check(t, s)
		}},
	}
}

func commitsComeBack(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.RunStarted{Flow: "flow", Fingerprint: "f1", Parallel: 4, Inputs: engine.Values{{Name: "b", Value: int64(1)}, {Name: "a", Value: 1.0}}})
	w.append(t, &engine.NodeStarted{Path: "a"})
	w.append(t)
	w.append(t, &engine.NodeCompleted{Path: "a", Micros: 12}, &engine.NodeStarted{Path: "b", Attempt: 2})
	w.append(t, &engine.RunCompleted{})
	w.check(t, s)
	for after := range int64(7) {
		sameCommits(t, read(t, s, "r", after), w.wrote[min(after, 5):])
	}
}

func groupOfRuns(t *testing.T, s Store) {
	var ws []*writer
	for i := range 8 {
		ws = append(ws, newWriter(t, s, fmt.Sprint("r", i)))
	}
	for range 3 {
		var group []store.Append
		for _, w := range ws {
			group = append(group, w.next(&engine.NodeStarted{Path: "a"}))
		}
		for i, err := range s.Append(t.Context(), group) {
			must(t, err)
			ws[i].acknowledged(group[i])
		}
	}
	for _, w := range ws {
		w.check(t, s)
	}
}

func concurrentAppends(t *testing.T, s Store) {
	const writers, commits = 8, 25
	var ws []*writer
	for i := range writers {
		ws = append(ws, newWriter(t, s, fmt.Sprint("r", i)))
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i, w := range ws {
		wg.Go(func() {
			for n := range commits {
				a := w.next(&engine.NodeStarted{Path: "n"},
					&engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "text", Value: fmt.Sprintf("a text of run %d, commit %d, long enough", i, n)}}})
				if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
					errs[i] = err
					return
				}
				w.acknowledged(a)
				for _, err := range s.Commits(t.Context(), w.lease.Run, int64(n)) {
					errs[i] = errors.Join(errs[i], err)
				}
			}
		})
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	for _, w := range ws {
		w.check(t, s)
	}
}

func refusalCases() []testCase {
	return []testCase{
		{"a run is created once", func(t *testing.T, s Store) {
			newWriter(t, s, "r")
			checkError(t, s.Create(t.Context(), store.NewRun{ID: "r", At: startTime()}), store.ErrExists)
		}},
		{"a commit that does not follow the last one is refused", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			bad := func(change func(*store.Append)) {
				t.Helper()
				a := w.next(&engine.NodeStarted{Path: "bad", Grants: []string{"main"}})
				change(&a)
				checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrSequence)
				w.check(t, s)
			}
			for range 3 {
				bad(func(a *store.Append) { a.Commit.Seq++ })
				bad(func(a *store.Append) { a.Commit.Seq-- })
				bad(func(a *store.Append) { a.Commit.First++ })
				bad(func(a *store.Append) { a.Commit.First-- })
				w.append(t, &engine.NodeStarted{Path: "a"}, &engine.NodeStarted{Path: "b"})
			}
		}},
		{"a commit under another fence is refused", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			for _, fence := range []int64{0, w.lease.Fence - 1, w.lease.Fence + 1} {
				a := w.next(&engine.NodeStarted{Path: "bad"})
				a.Fence = fence
				checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrFenced)
			}
			w.check(t, s)
		}},
		{"a run without an owner takes no commit", func(t *testing.T, s Store) {
			must(t, s.Create(t.Context(), store.NewRun{ID: "r", At: startTime()}))
			w := writer{s: s, lease: store.Lease{Run: "r"}, first: 1}
			checkError(t, s.Append(t.Context(), []store.Append{w.next()})[0], store.ErrFenced)
		}},
		{"a missing run is an error everywhere", missingRun},
		{"a bad commit in a group does not affect the others", badInGroup},
		{"an event that cannot be stored is refused or kept, and does not affect others", func(t *testing.T, s Store) {
			w, v := newWriter(t, s, "r"), newWriter(t, s, "v")
			group := []store.Append{
				w.next(&engine.EffectCompleted{Key: "k", Result: make(chan int)}), v.next(&engine.NodeStarted{Path: "a"}),
			}
			errs := s.Append(t.Context(), group)
			must(t, errs[1])
			v.acknowledged(group[1])
			v.check(t, s)
			if errs[0] == nil {
				w.acknowledged(group[0])
			}
			w.append(t, &engine.NodeStarted{Path: "a"})
		}},
		{"a call with an ended Go context appends nothing", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			checkError(t, s.Append(ctx, []store.Append{w.next(&engine.NodeStarted{Path: "a"})})[0], context.Canceled)
			w.check(t, s)
			w.append(t, &engine.NodeStarted{Path: "b"})
			w.check(t, s)
		}},
		{"a closed store refuses everything and says so", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			must(t, s.Close())
			must(t, s.Close())
			checkError(t, s.Append(t.Context(), []store.Append{w.next()})[0], store.ErrClosed)
			checkError(t, s.Create(t.Context(), store.NewRun{ID: "x", At: startTime()}), store.ErrClosed)
			_, err := s.Run(t.Context(), "r")
			checkError(t, err, store.ErrClosed)
			for _, err := range s.Commits(t.Context(), "r", 0) {
				checkError(t, err, store.ErrClosed)
			}
			_, err = s.Inbox(t.Context(), "r")
			checkError(t, err, store.ErrClosed)
		}},
	}
}

func checkError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) && !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func missingRun(t *testing.T, s Store) {
	ctx := t.Context()
	w := writer{s: s, lease: store.Lease{Run: "no", Owner: "me", Fence: 1}, first: 1}
	checkError(t, s.Append(ctx, []store.Append{w.next()})[0], store.ErrNotFound)
	n := 0
	for _, err := range s.Commits(ctx, "no", 0) {
		checkError(t, err, store.ErrNotFound)
		n++
	}
	equal(t, "errors of an iteration", n, 1)
	_, err := s.Run(ctx, "no")
	checkError(t, err, store.ErrNotFound)
	_, err = s.at(startTime()).Acquire(ctx, "no", "me", 1)
	checkError(t, err, store.ErrNotFound)
	_, err = s.Runs(ctx, store.Filter{Before: "no"})
	checkError(t, err, store.ErrNotFound)
	_, err = s.Messages(ctx, "no", "main", 0, 1)
	checkError(t, err, store.ErrNotFound)
	_, err = s.Checkpoint(ctx, "no")
	checkError(t, err, store.ErrNotFound)
	if s.Capabilities().Checkpoints != nil {
		checkError(t, s.SaveCheckpoint(ctx, store.Checkpoint{Run: "no"}), store.ErrNotFound)
	}
	checkError(t, s.Post(ctx, store.Post{Run: "no", At: startTime()}), store.ErrNotFound)
	lost, err := s.at(startTime()).Renew(ctx, []store.Lease{w.lease}, 1)
	must(t, err)
	equal(t, "lost", lost, []string{"no"})
	must(t, s.Release(ctx, w.lease))
	posts, err := s.Inbox(ctx, "no")
	must(t, err)
	equal(t, "posts", len(posts), 0)
}

func badInGroup(t *testing.T, s Store) {
	a, b, c := newWriter(t, s, "a"), newWriter(t, s, "b"), newWriter(t, s, "c")
	const text = "the same text in all of them, long enough to be shared"
	say := func(w *writer) store.Append {
		return w.next(&engine.NodeCompleted{
			Path: "n", Outputs: engine.Values{{Name: "text", Value: text}},
			Contexts: []engine.ContextChange{messageChange("main", "u", text)},
		})
	}
	group := []store.Append{say(a), say(b), say(c), say(a)}
	group[1].Fence++
	group[3].Commit.Seq, group[3].Commit.First = 7, 7
	errs := s.Append(t.Context(), group)
	must(t, errs[0])
	checkError(t, errs[1], store.ErrFenced)
	must(t, errs[2])
	checkError(t, errs[3], store.ErrSequence)
	a.acknowledged(group[0])
	c.acknowledged(group[2])
	for _, w := range []*writer{a, b, c} {
		w.check(t, s)
		x := say(w)
		must(t, s.Append(t.Context(), []store.Append{x})[0])
		w.acknowledged(x)
		w.check(t, s)
	}
	ms, err := s.Messages(t.Context(), "b", "main", 0, 10)
	must(t, err)
	equal(t, "messages of the run whose commit was refused", len(ms), 1)
}
