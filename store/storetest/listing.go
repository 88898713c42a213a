package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func listingCases() []testCase {
	return []testCase{
		{"a run has the data that it was created with and its status", oneRun},
		{"runs are listed newest first, filtered and in pages", listRuns},
		{"runs are found by the beginning of their id", func(t *testing.T, s Store) {
			for _, id := range []string{"ab1", "ab%", "ab_x", "abÜ", "b", "AB"} {
				must(t, s.Create(t.Context(), store.NewRun{ID: id, At: startTime()}))
			}
			for prefix, want := range map[string][]string{
				"ab": {"ab%", "ab1", "ab_x", "abÜ"}, "ab_": {"ab_x"}, "ab%": {"ab%"}, "abÜ": {"abÜ"},
				"": {"AB", "ab%", "ab1", "ab_x", "abÜ", "b"}, "c": {}, "B": {},
			} {
				ids, err := s.FindRunIDs(t.Context(), prefix)
				must(t, err)
				equal(t, fmt.Sprintf("runs %q", prefix), ids, want)
			}
		}},
		{"the next timer of runs without an owner is known", dueRuns},
	}
}

func oneRun(t *testing.T, s Store) {
	n := store.NewRun{ID: "r", Flow: "f", Fingerprint: "p", User: "u", Parent: "none", Origin: "cli", At: startTime()}
	must(t, s.Create(t.Context(), n))
	got, err := s.Run(t.Context(), "r")
	must(t, err)
	equal(t, "created", got.Created.Equal(startTime()) && got.Updated.Equal(startTime()), true)
	got.Created, got.Updated = time.Time{}, time.Time{}
	equal(t, "new run", got, store.Run{
		ID: "r", Flow: "f", Fingerprint: "p", User: "u", Parent: "none", Origin: "cli",
		Head: store.Head{Waiting: []engine.Interrupt{}},
	})

	w := &writer{s: s, first: 1}
	w.lease, err = s.at(startTime()).Acquire(t.Context(), "r", "me", time.Hour)
	must(t, err)
	w.append(t, &engine.NodeStarted{Path: "a"})
	a := w.next(&engine.NodeStarted{Path: "a"}, &engine.NodeStarted{Path: "b"})
	a.Head = store.Head{
		Status: engine.Paused, Due: 77, Usage: engine.Usage{Calls: 2, Input: 10, CostMicros: 5},
		Waiting: []engine.Interrupt{{ID: "i", Kind: engine.AwaitInput, Prompt: "yes?", Schema: map[string]any{"minLength": int64(1), "x": 1.0}}},
		Error:   &engine.Error{Code: "c", Message: "m", Node: "n"},
	}
	for range 2 { // again with the same head
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		w.acknowledged(a)
		got, err = s.Run(t.Context(), "r")
		must(t, err)
		equal(t, "head", got.Head, a.Head)
		equal(t, "commits and events", []int64{got.Commits, got.Events}, []int64{int64(len(w.wrote)), w.first - 1})
		equal(t, "updated", got.Updated.UnixMilli(), a.Commit.At)
		equal(t, "owner", got.Owner, "me")
		equal(t, "until", got.Until.Equal(startTime().Add(time.Hour)), true)
		head := a.Head
		a = w.next(&engine.NodeStarted{Path: "c"})
		a.Head = head
	}
	w.append(t, &engine.RunCompleted{})
	got, err = s.Run(t.Context(), "r")
	must(t, err)
	equal(t, "head without what was there", got.Head, store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}})
}

func listRuns(t *testing.T, s Store) {
	all := []engine.Status{engine.Pending, engine.Running, engine.Paused, engine.Completed, engine.Failed, engine.Cancelled}
	for i := range 130 {
		n := store.NewRun{ID: fmt.Sprintf("r%03d", i), Flow: fmt.Sprint("f", i%2), User: fmt.Sprint("u", i%3), At: startTime().Add(time.Duration(i) * time.Second)}
		if i > 0 && i%10 == 0 {
			n.Parent = "r000"
		}
		must(t, s.Create(t.Context(), n))
		l, err := s.at(startTime()).Acquire(t.Context(), n.ID, "me", time.Hour)
		must(t, err)
		a := (&writer{s: s, lease: l, first: 1}).next()
		a.Head.Status = all[i%len(all)]
		must(t, s.Append(t.Context(), []store.Append{a})[0])
	}
	count := func(f store.Filter, want int, keep func(i int) bool) {
		t.Helper()
		var ids, expect []string
		for f.Limit = 7; ; {
			page, err := s.Runs(t.Context(), f)
			must(t, err)
			for _, r := range page {
				ids = append(ids, r.ID)
			}
			if len(page) < f.Limit {
				break
			}
			f.Before = ids[len(ids)-1]
		}
		for i := 129; i >= 0; i-- {
			if keep(i) {
				expect = append(expect, fmt.Sprintf("r%03d", i))
			}
		}
		equal(t, fmt.Sprintf("runs of %+v", f), ids, expect)
		equal(t, "how many", len(ids), want)
	}
	count(store.Filter{}, 130, func(int) bool { return true })
	count(store.Filter{Flow: "f1"}, 65, func(i int) bool { return i%2 == 1 })
	count(store.Filter{User: "u2", Flow: "f0"}, 22, func(i int) bool { return i%3 == 2 && i%2 == 0 })
	count(store.Filter{Parent: "r000"}, 12, func(i int) bool { return i > 0 && i%10 == 0 })
	count(store.Filter{Status: []engine.Status{engine.Paused, engine.Failed}}, 43, func(i int) bool { return i%6 == 2 || i%6 == 4 })
	count(store.Filter{Flow: "none"}, 0, func(int) bool { return false })
	page, err := s.Runs(t.Context(), store.Filter{})
	must(t, err)
	equal(t, "default limit", len(page), 100)
}

func dueRuns(t *testing.T, s Store) {
	at := func(n int) time.Time { return startTime().Add(time.Duration(n) * time.Minute) }
	for i, due := range []int{30, 10, 0, 20, 10} {
		w := newWriter(t, s, fmt.Sprint("r", i))
		a := w.next(&engine.NodeStarted{Path: "a"})
		if due > 0 {
			a.Head.Due = at(due).UnixMilli()
		}
		must(t, s.Append(t.Context(), []store.Append{a})[0])
		if i != 4 {
			must(t, s.Release(t.Context(), w.lease))
		}
	}
	for _, c := range []struct{ after, want int }{{0, 10}, {9, 10}, {10, 20}, {20, 30}, {30, 0}, {61, 0}} {
		wait, ok, err := s.at(at(c.after)).NextDue(t.Context())
		must(t, err)
		if want := at(c.want).Sub(at(c.after)); ok != (c.want > 0) || ok && wait != want {
			t.Errorf("at minute %d the next timer is due in %s (%v), want minute %d", c.after, wait, ok, c.want)
		}
	}
}
