package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func documentCases() []testCase {
	return []testCase{
		{"a document changes only from the version that was read", documentVersions},
		{"documents are listed by id, user, run and prefix", documentListing},
		{"documents are trimmed from the end of their order", documentTrimming},
		{"the kinds of documents are listed", documentKinds},
		{"each due document is claimed by one caller", documentClaims},
		{"documents are deleted with their user and their run", documentDeletion},
		{"documents of a session are deleted with it, its forks and its user", documentSessionDeletion},
		{"a commit that ends a run or asks leaves a notice while notices are requested", documentNotices},
	}
}

func putDocument(t *testing.T, s Store, d store.Document) store.Document {
	t.Helper()
	if d.Body == nil {
		d.Body = json.RawMessage(`{}`)
	}
	kept, err := s.PutDocument(t.Context(), d)
	must(t, err)
	return kept
}

func documentVersions(t *testing.T, s Store) {
	d := putDocument(t, s, store.Document{Kind: "flow", ID: "a", User: "u", Body: json.RawMessage(`{"n": 1}`)})
	equal(t, "first version", d.Version, int64(1))
	_, err := s.PutDocument(t.Context(), store.Document{Kind: "flow", ID: "a", Body: json.RawMessage(`{}`)})
	checkError(t, err, store.ErrExists)
	d.Body, d.Due = json.RawMessage(`{"n": 2}`), startTime().Add(time.Hour)
	s = s.at(startTime().Add(time.Minute))
	d = putDocument(t, s, d)
	equal(t, "times", []time.Time{d.Created, d.Updated}, []time.Time{startTime(), startTime().Add(time.Minute)})
	stale := d
	stale.Version = 1
	_, err = s.PutDocument(t.Context(), stale)
	checkError(t, err, store.ErrChanged)
	s = s.reopen(t)
	got, err := s.Document(t.Context(), "flow", "a")
	must(t, err)
	equal(t, "document", got, d)
	checkError(t, s.DeleteDocument(t.Context(), "flow", "a", 1), store.ErrChanged)
	must(t, s.DeleteDocument(t.Context(), "flow", "a", 2))
	checkError(t, s.DeleteDocument(t.Context(), "flow", "a", 0), store.ErrNotFound)
	_, err = s.Document(t.Context(), "flow", "a")
	checkError(t, err, store.ErrNotFound)
	_, err = s.PutDocument(t.Context(), d)
	checkError(t, err, store.ErrNotFound)
}

func documentListing(t *testing.T, s Store) {
	for i, id := range []string{"b/2", "a/1", "b/1", "c/1"} {
		putDocument(t, s, store.Document{Kind: "k", ID: id, User: []string{"u", "v"}[i%2], Run: fmt.Sprint("run", i%2)})
	}
	putDocument(t, s, store.Document{Kind: "other", ID: "a/0"})
	for _, c := range []struct {
		filter store.DocumentFilter
		want   []string
	}{
		{store.DocumentFilter{}, []string{"a/1", "b/1", "b/2", "c/1"}},
		{store.DocumentFilter{Limit: 2}, []string{"a/1", "b/1"}},
		{store.DocumentFilter{After: "b/1"}, []string{"b/2", "c/1"}},
		{store.DocumentFilter{Prefix: "b/"}, []string{"b/1", "b/2"}},
		{store.DocumentFilter{User: "v"}, []string{"a/1", "c/1"}},
		{store.DocumentFilter{Run: "run0"}, []string{"b/1", "b/2"}},
		{store.DocumentFilter{User: "nobody"}, nil},
	} {
		c.filter.Kind = "k"
		list, err := s.Documents(t.Context(), c.filter)
		must(t, err)
		var ids []string
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		equal(t, fmt.Sprintf("%+v", c.filter), ids, c.want)
	}
}

func documentTrimming(t *testing.T, s Store) {
	for i := range 8 {
		putDocument(t, s, store.Document{Kind: "log", ID: fmt.Sprint(i)})
	}
	putDocument(t, s, store.Document{Kind: "other", ID: "9"})
	for _, c := range []struct {
		keep, deleted, left int
		after               string
	}{
		{keep: 100, after: "z", deleted: 0, left: 8},
		{keep: 8, after: "7", deleted: 0, left: 8},
		{keep: 7, after: "z", deleted: 1, left: 7},
		{keep: 100, after: "4", deleted: 2, left: 5},
		{keep: 2, after: "3", deleted: 3, left: 2},
		{keep: 0, after: "z", deleted: 2, left: 0},
	} {
		n, err := s.TrimDocuments(t.Context(), "log", c.keep, c.after)
		must(t, err)
		equal(t, fmt.Sprintf("deleted by %+v", c), n, c.deleted)
		list, err := s.Documents(t.Context(), store.DocumentFilter{Kind: "log"})
		must(t, err)
		equal(t, fmt.Sprintf("left by %+v", c), len(list), c.left)
	}
	_, err := s.Document(t.Context(), "other", "9")
	must(t, err)
}

func documentKinds(t *testing.T, s Store) {
	kinds, err := s.DocumentKinds(t.Context())
	must(t, err)
	equal(t, "without documents", len(kinds), 0)
	for _, kind := range []string{"ä", "b", "B", "b"} {
		putDocument(t, s, store.Document{Kind: kind, ID: fmt.Sprint(len(kinds))})
		kinds = append(kinds, kind)
	}
	kinds, err = s.DocumentKinds(t.Context())
	must(t, err)
	equal(t, "kinds", kinds, []string{"B", "b", "ä"})
	must(t, s.DeleteDocument(t.Context(), "B", "2", 0))
	kinds, err = s.DocumentKinds(t.Context())
	must(t, err)
	equal(t, "after a deletion", kinds, []string{"b", "ä"})
}

func documentClaims(t *testing.T, s Store) {
	for i := range 20 {
		putDocument(t, s, store.Document{Kind: "job", ID: fmt.Sprint(i), Due: startTime()})
	}
	putDocument(t, s, store.Document{Kind: "job", ID: "later", Due: startTime().Add(time.Minute)})
	putDocument(t, s, store.Document{Kind: "job", ID: "never"})
	var all sync.WaitGroup
	claimed := make([][]store.Document, 4)
	for i := range claimed {
		all.Go(func() {
			for {
				list, err := s.ClaimDocuments(t.Context(), "job", time.Hour, 3)
				if err != nil || len(list) == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				claimed[i] = append(claimed[i], list...)
			}
		})
	}
	all.Wait()
	mine := slices.Concat(claimed...)
	equal(t, "claims", len(mine), 20)
	done := mine[0]
	done.Due = time.Time{}
	putDocument(t, s, done)
	_, err := s.PutDocument(t.Context(), done) // with the version of the claim
	checkError(t, err, store.ErrChanged)
	s = s.at(startTime().Add(time.Hour))
	again, err := s.ClaimDocuments(t.Context(), "job", time.Hour, 100)
	must(t, err)
	equal(t, "claims of which nobody has recorded the end", len(again), 20) // 19, and the later one
}

func documentDeletion(t *testing.T, s Store) {
	if s.Capabilities().Deletion == nil {
		t.Skip("the store does not declare the capability deletion")
	}
	newWriter(t, s, "r").append(t, &engine.RunStarted{})
	newWriter(t, s, "kept").append(t, &engine.RunStarted{})
	putDocument(t, s, store.Document{Kind: "k", ID: "of the run", Run: "r"})
	putDocument(t, s, store.Document{Kind: "k", ID: "of the user", User: "u"})
	putDocument(t, s, store.Document{Kind: "k", ID: "of another", User: "v", Run: "kept"})
	putDocument(t, s, store.Document{Kind: "k", ID: "of no run of the store", Run: "elsewhere"})
	count := func() int {
		t.Helper()
		list, err := s.Documents(t.Context(), store.DocumentFilter{Kind: "k"})
		must(t, err)
		return len(list)
	}
	_, err := s.DeleteRun(t.Context(), "r", store.DeleteOptions{DryRun: true, Force: true})
	must(t, err)
	equal(t, "after a dry run", count(), 4)
	_, err = s.DeleteRun(t.Context(), "r", store.DeleteOptions{Force: true})
	must(t, err)
	equal(t, "after the deletion of the run", count(), 3)
	_, err = s.DeleteUser(t.Context(), "u", store.DeleteOptions{})
	must(t, err)
	equal(t, "after the deletion of the user", count(), 2)
}

func documentSessionDeletion(t *testing.T, s Store) {
	if c := s.Capabilities(); c.Deletion == nil || c.Sessions == nil {
		t.Skip("the store does not declare the capabilities deletion and sessions")
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		n := store.NewSession{ID: id, User: "u" + id, Flow: "f", Now: startTime()}
		if id == "b" {
			n.Parent = "a"
		}
		if id == "d" {
			n.Expires = startTime().Add(time.Hour)
		}
		must(t, s.CreateSession(t.Context(), n))
		putDocument(t, s, store.Document{Kind: "k", ID: id, Run: id})
	}
	left := func() (ids []string) {
		t.Helper()
		list, err := s.Documents(t.Context(), store.DocumentFilter{Kind: "k"})
		must(t, err)
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		return ids
	}
	_, err := s.DeleteSession(t.Context(), "a", store.DeleteOptions{DryRun: true, Force: true})
	must(t, err)
	equal(t, "after a dry run", left(), []string{"a", "b", "c", "d", "e"})
	_, err = s.DeleteSession(t.Context(), "a", store.DeleteOptions{Force: true})
	must(t, err)
	equal(t, "after the deletion of a session and its fork", left(), []string{"c", "d", "e"})
	_, err = s.DeleteUser(t.Context(), "uc", store.DeleteOptions{})
	must(t, err)
	equal(t, "after the deletion of a user", left(), []string{"d", "e"})
	_, err = s.PruneSessions(t.Context(), store.PruneOptions{Now: startTime().Add(2 * time.Hour)})
	must(t, err)
	equal(t, "after the deletion of expired sessions", left(), []string{"e"})
}

func documentNotices(t *testing.T, s Store) {
	commit := func(w *writer, h store.Head) {
		t.Helper()
		a := w.next(&engine.NoteRecorded{Key: "note"})
		a.Head = h
		must(t, w.s.Append(t.Context(), []store.Append{a})[0])
		w.acknowledged(a)
	}
	near := func(w *writer, budgets ...string) { // the head stays what it was
		t.Helper()
		a := w.next(&engine.NoteRecorded{Key: "note"})
		a.Head, a.NearBudgets = store.Head{Status: engine.Running}, budgets
		must(t, w.s.Append(t.Context(), []store.Append{a})[0])
		w.acknowledged(a)
	}
	asks := store.Head{Status: engine.Paused, Waiting: []engine.Interrupt{{ID: "ask#1"}}}
	w := newWriter(t, s, "r")
	w.append(t, &engine.RunStarted{})
	commit(w, asks)
	near(w, ".")
	commit(w, asks)
	list, err := s.Notices(t.Context(), 10)
	must(t, err)
	equal(t, "notices that nobody wants", len(list), 0)
	putDocument(t, s, store.Document{Kind: store.NoticeKind, ID: "w"})
	commit(w, asks)
	commit(w, store.Head{Status: engine.Paused, Waiting: []engine.Interrupt{{ID: "ask#1"}, {ID: "ask#2"}}})
	commit(w, store.Head{Status: engine.Running})
	commit(w, store.Head{Status: engine.Failed, Error: &engine.Error{Code: "failed", Message: "m"}})
	commit(w, store.Head{Status: engine.Failed, Error: &engine.Error{Code: "failed", Message: "m"}})
	commit(w, store.Head{Status: engine.Running})
	near(w, ".", "ask")
	commit(w, store.Head{Status: engine.Completed})
	s = s.reopen(t)
	list, err = s.Notices(t.Context(), 10)
	must(t, err)
	var got []string
	var ids []int64
	for i := range list {
		got = append(got, fmt.Sprint(list[i].Run, " ", list[i].Seq, " ", list[i].Status, " ", list[i].Waiting, " ", list[i].Budgets))
		ids = append(ids, list[i].ID)
	}
	equal(t, "notices", got, []string{
		"r 6 paused [ask#1 ask#2] []", "r 8 failed [] []", "r 11 running [] [. ask]", "r 12 completed [] []",
	})
	must(t, s.RemoveNotices(t.Context(), append(ids[:1:1], 99)))
	list, err = s.Notices(t.Context(), 1)
	must(t, err)
	equal(t, "the next one", list[0].Seq, int64(8))
	must(t, s.DeleteDocument(t.Context(), store.NoticeKind, "w", 0))
}
