package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func leaseCases() []testCase {
	return []testCase{
		{"a run has one owner at a time", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			_, err := s.at(startTime().Add(59*time.Minute)).Acquire(t.Context(), "r", "you", time.Hour)
			checkError(t, err, store.ErrOwned)
			for _, word := range []string{"me", startTime().Add(time.Hour).UTC().Format(time.RFC3339)} {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			w.append(t, &engine.NodeStarted{Path: "a"})
		}},
		{"the owner of a run may acquire it again", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			l, err := s.at(startTime().Add(time.Minute)).Acquire(t.Context(), "r", "me", time.Hour)
			must(t, err)
			equal(t, "fence", l.Fence, w.lease.Fence)
			equal(t, "until", l.Until.Equal(startTime().Add(61*time.Minute)), true)
			w.append(t, &engine.NodeStarted{Path: "a"})
		}},
		{"an expired lease may be taken, and the old owner is fenced off", handOver},
		{"a released lease may be taken at once", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			must(t, s.Release(t.Context(), w.lease))
			checkError(t, s.Append(t.Context(), []store.Append{w.next(&engine.NodeStarted{Path: "late"})})[0], store.ErrFenced)
			run, err := s.Run(t.Context(), "r")
			must(t, err)
			equal(t, "owner", run.Owner, "")
			old := w.lease
			w.lease, err = s.at(startTime()).Acquire(t.Context(), "r", "you", time.Hour)
			must(t, err)
			if w.lease.Fence <= old.Fence {
				t.Errorf("fence %d after %d", w.lease.Fence, old.Fence)
			}
			must(t, s.Release(t.Context(), old))
			w.append(t, &engine.NodeStarted{Path: "b"})
			w.check(t, s)
		}},
		{"renewing extends leases and names those that are lost", func(t *testing.T, s Store) {
			a, b, c := newWriter(t, s, "a"), newWriter(t, s, "b"), newWriter(t, s, "c")
			now := startTime().Add(2 * time.Hour)
			_, err := s.at(now).Acquire(t.Context(), "b", "you", time.Hour)
			must(t, err)
			lost, err := s.at(now).Renew(t.Context(), []store.Lease{a.lease, b.lease, c.lease}, time.Hour)
			must(t, err)
			equal(t, "lost", lost, []string{"b"})
			_, err = s.at(now.Add(59*time.Minute)).Acquire(t.Context(), "a", "you", time.Hour)
			checkError(t, err, store.ErrOwned)
			lost, err = s.at(now).Renew(t.Context(), nil, time.Hour)
			must(t, err)
			equal(t, "lost of none", len(lost), 0)
		}},
		{"one of many concurrent acquisitions succeeds", func(t *testing.T, s Store) {
			must(t, s.Create(t.Context(), store.NewRun{ID: "r", At: startTime()}))
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wg.Go(func() {
					_, errs[i] = s.at(startTime()).Acquire(t.Context(), "r", fmt.Sprint("owner ", i), time.Hour)
				})
			}
			wg.Wait()
			got := 0
			for _, err := range errs {
				if err == nil {
					got++
				} else if !errors.Is(err, store.ErrOwned) {
					t.Error(err)
				}
			}
			equal(t, "owners", got, 1)
		}},
		{"a commit acquires a free run, and releases it", commitsAcquireAndRelease},
		{"a commit does not acquire an owned run", acquireOwnedRun},
	}
}

// acquireOwnedRun lets a commit try to acquire a run that has an owner.
func acquireOwnedRun(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeStarted{Path: "a"})
	a := w.next(&engine.NodeStarted{Path: "b"})
	a.Fence++
	a.Acquire = &store.Lease{Run: "r", Owner: "you", Fence: a.Fence, TTL: time.Hour}
	checkError(t, s.Append(t.Context(), []store.Append{a})[0], store.ErrFenced)
	w.append(t, &engine.NodeStarted{Path: "b"})
	w.check(t, s)
}

// commitsAcquireAndRelease lets commits acquire and release runs.
func commitsAcquireAndRelease(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	say := func(a store.Append, took bool) {
		t.Helper()
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		w.acknowledged(a)
		run, err := s.Run(t.Context(), "r")
		must(t, err)
		owner := ""
		if took {
			owner = a.Acquire.Owner
			equal(t, "until", run.Until.Equal(startTime().Add(a.Acquire.TTL)), true)
		}
		equal(t, "owner", run.Owner, owner)
		w.lease.Fence = run.Fence
	}
	left := w.next(&engine.NodeStarted{Path: "a"})
	left.Release = true
	say(left, false)
	gone := w.next(&engine.NodeStarted{Path: "not taken"})
	gone.Fence = left.Fence
	checkError(t, s.Append(t.Context(), []store.Append{gone})[0], store.ErrFenced)
	takes := func(owner string) store.Append {
		a := w.next(&engine.NodeStarted{Path: "by " + owner})
		a.Fence++
		a.Acquire = &store.Lease{Run: "r", Owner: owner, Fence: a.Fence, TTL: time.Hour}
		return a
	}
	late := takes("late")
	say(takes("you"), true)
	checkError(t, s.Append(t.Context(), []store.Append{late})[0], store.ErrFenced)
	_, err := s.at(startTime()).Acquire(t.Context(), "r", "late", time.Hour)
	checkError(t, err, store.ErrOwned)
	left = w.next(&engine.NodeStarted{Path: "c"})
	left.Release = true
	say(left, false)
	both := takes("me")
	both.Release = true
	say(both, false)
	wrong := takes("me")
	wrong.Commit.Seq++
	checkError(t, s.Append(t.Context(), []store.Append{wrong})[0], store.ErrSequence)
	say(takes("me"), true)
	w.check(t, s)
}

func handOver(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	text := "a text long enough to be shared between commits"
	say := func() engine.Event {
		return &engine.NodeCompleted{
			Path: "n", Outputs: engine.Values{{Name: "text", Value: text}},
			Contexts: []engine.ContextChange{messageChange("main", "", text)},
		}
	}
	for turn := range 4 {
		w.append(t, say())
		old := w.lease
		var err error
		w.lease, err = s.at(startTime().Add(time.Duration(turn+1)*time.Hour)).Acquire(t.Context(), "r", fmt.Sprint("owner ", turn), time.Hour)
		must(t, err)
		equal(t, "fence", w.lease.Fence, old.Fence+1)
		stale := w.next(say())
		stale.Fence = old.Fence
		checkError(t, s.Append(t.Context(), []store.Append{stale})[0], store.ErrFenced)
		lost, err := s.at(startTime()).Renew(t.Context(), []store.Lease{old}, time.Hour)
		must(t, err)
		equal(t, "lost", lost, []string{"r"})
	}
	w.append(t, say())
	w.check(t, s)
	ms, err := s.Messages(t.Context(), "r", "main", 0, 99)
	must(t, err)
	equal(t, "messages", len(ms), 5)
}
