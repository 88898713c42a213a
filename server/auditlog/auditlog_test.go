//go:build unix

package auditlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/postgres"
	"github.com/weir-run/weir/store/sqlite"
)

// onStores runs a test on each store.
func onStores(t *testing.T, test func(t *testing.T, s *store.Full)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (store.Store, error){
		"memory": func(*testing.T) (store.Store, error) { return memory.New(), nil },
		"sqlite": func(t *testing.T) (store.Store, error) {
			t.Helper()
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (store.Store, error) {
			t.Helper()
			return postgres.Open(t.Context(), pgtest.Start(t).Schema(t), postgres.Options{MaxConnections: 4})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, store.Complete(s))
		})
	}
}

func list(t *testing.T, l *auditlog.Log, f auditlog.Filter, limit int) (out []auditlog.Entry) {
	t.Helper()
	for after := ""; ; {
		page, err := l.List(t.Context(), f, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > limit {
			t.Fatalf("%d entries on a page of %d", len(page.Entries), limit)
		}
		out = append(out, page.Entries...)
		if page.Next == "" {
			return out
		}
		after = page.Next
	}
}

func verify(t *testing.T, l *auditlog.Log) *auditlog.Verified {
	t.Helper()
	v, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEntriesAreFoundByEveryFilter(t *testing.T) {
	t.Parallel()
	onStores(t, checkFilters)
}

func checkFilters(t *testing.T, s *store.Full) {
	t.Helper()
	l := auditlog.New(s, auditlog.Options{})
	record := func(user, token, action, object string, status int) {
		t.Helper()
		a, err := l.Begin(t.Context(), auditlog.Entry{Via: "api", User: user, Token: token, Action: action, Objects: map[string]string{"run": object}})
		if err != nil {
			t.Fatal(err)
		}
		if status == 0 {
			return
		}
		if err := a.About(t.Context(), "user", "carl"); err != nil {
			t.Fatal(err)
		}
		if err := a.End(t.Context(), status, ""); err != nil {
			t.Fatal(err)
		}
	}
	record("ada", "k1", "POST /v1/runs", "r1", 201)
	record("bob", "k2", "DELETE /v1/runs/{run}", "r1", 409)
	record("ada", "k3", "DELETE /v1/runs/{run}", "r2", 500)
	record("", "", "POST /v1/runs", "r3", 0)
	for _, c := range []struct {
		f    auditlog.Filter
		want string
	}{
		{auditlog.Filter{}, "r3 r2 r1 r1"},
		{auditlog.Filter{User: "ada"}, "r2 r1"},
		{auditlog.Filter{User: "nobody"}, ""},
		{auditlog.Filter{Token: "k2"}, "r1"},
		{auditlog.Filter{Action: "DELETE"}, "r2 r1"},
		{auditlog.Filter{Object: "r1"}, "r1 r1"},
		{auditlog.Filter{Object: "carl"}, "r2 r1 r1"},
		{auditlog.Filter{Outcome: auditlog.OutcomeOK}, "r1"},
		{auditlog.Filter{Outcome: auditlog.OutcomeRefused}, "r1"},
		{auditlog.Filter{Outcome: auditlog.OutcomeFailed}, "r2"},
		{auditlog.Filter{Outcome: auditlog.OutcomeOpen}, "r3"},
		{auditlog.Filter{User: "ada", Outcome: auditlog.OutcomeFailed}, "r2"},
		{auditlog.Filter{Since: time.Now().Add(time.Hour)}, ""},
		{auditlog.Filter{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, "r3 r2 r1 r1"},
		{auditlog.Filter{Until: time.Now().Add(-time.Hour)}, ""},
	} {
		for _, limit := range []int{1, 3, 100} {
			var got []string
			for _, e := range list(t, l, c.f, limit) {
				got = append(got, e.Objects["run"])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%+v, %d a page: %v, not %s", c.f, limit, got, c.want)
			}
		}
	}
}

func TestAnErasedUserIsAPseudonymInTheLog(t *testing.T) {
	t.Parallel()
	onStores(t, checkErasure)
}

// checkNoNames fails if an entry in the store names a user.
func checkNoNames(t *testing.T, s *store.Full) {
	t.Helper()
	docs, err := s.Documents(t.Context(), store.DocumentFilter{Kind: store.AuditKind})
	if err != nil || len(docs) != 3 {
		t.Fatal(len(docs), err)
	}
	for i := range docs {
		if text := string(docs[i].Body); strings.Contains(text, `"ada"`) || strings.Contains(text, `"root"`) {
			t.Errorf("an entry names a user: %s", text)
		}
	}
}

func checkErasure(t *testing.T, s *store.Full) {
	t.Helper()
	l := auditlog.New(s, auditlog.Options{})
	record := func(user, about string) {
		t.Helper()
		if err := l.Record(t.Context(), auditlog.Entry{Via: "api", User: user, Action: "a", Objects: map[string]string{"user": about}, Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	record("ada", "ada")
	record("root", "ada")
	record("bob", "bob")
	checkNoNames(t, s)
	if _, err := s.DeleteUser(t.Context(), "ada", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	record("ada", "ada") // another person, or the same one again
	got := list(t, l, auditlog.Filter{}, 10)
	erased := got[3].User
	want := []string{"ada", "ada", "bob", "bob", "root", erased, erased, erased}
	var have []string
	for i := range got {
		have = append(have, got[i].User, got[i].Objects["user"])
	}
	if !slices.Equal(have, want) || !strings.HasPrefix(erased, "erased:") {
		t.Errorf("%v, not %v", have, want)
	}
	if v := verify(t, l); len(v.Problems) > 0 || v.Entries != 4 {
		t.Errorf("after an erasure: %+v", v)
	}
	if got := list(t, l, auditlog.Filter{User: erased}, 10); len(got) != 1 {
		t.Errorf("entries of the erased user: %+v", got)
	}
}

func TestTheLogIsBoundedByAgeAndNumber(t *testing.T) {
	t.Parallel()
	onStores(t, checkBounds)
}

func checkBounds(t *testing.T, s *store.Full) {
	t.Helper()
	const entries = 30
	l := auditlog.New(s, auditlog.Options{Keep: time.Hour, Entries: 20})
	for i := range entries {
		if err := l.Record(t.Context(), auditlog.Entry{Via: "api", Action: fmt.Sprint(i), Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		at            time.Time
		deleted, left int
	}{{time.Now(), 10, 20}, {time.Now(), 0, 20}, {time.Now().Add(2 * time.Hour), 20, 0}} {
		n, err := l.Trim(t.Context(), c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := list(t, l, auditlog.Filter{}, 7)
		if n != c.deleted || len(got) != c.left || c.left > 0 && got[0].Action != fmt.Sprint(entries-1) {
			t.Errorf("%d deleted, %d left", n, len(got))
		}
		if v := verify(t, l); len(v.Problems) > 0 {
			t.Errorf("after trimming: %v", v.Problems)
		}
	}
}

// TestChangedAndRemovedEntriesAreFound changes each member of an entry that is part of its digest, and removes
// entries, where several processes have written at the same time.
func TestChangedAndRemovedEntriesAreFound(t *testing.T) {
	t.Parallel()
	onStores(t, checkChanges)
}

// writeTogether writes 60 entries from several logs at the same time.
func writeTogether(t *testing.T, s *store.Full) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		l := auditlog.New(s, auditlog.Options{})
		for range 4 {
			all.Go(func() {
				for range 5 {
					if err := l.Record(ctx, auditlog.Entry{Via: "api", User: "ada", Token: "k", Action: "a", Objects: map[string]string{"run": "r"}, Status: 200}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
}

func checkChanges(t *testing.T, s *store.Full) {
	t.Helper()
	ctx := t.Context()
	writeTogether(t, s)
	l := auditlog.New(s, auditlog.Options{})
	if v := verify(t, l); v.Entries != 60 || v.Chains != 3 || len(v.Problems) > 0 {
		t.Fatalf("%+v", v)
	}
	docs, err := s.Documents(ctx, store.DocumentFilter{Kind: store.AuditKind})
	if err != nil {
		t.Fatal(err)
	}
	d := docs[30]
	body := map[string]any{}
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatal(err)
	}
	change := func(name string, value any) {
		t.Helper()
		changed := maps.Clone(body)
		if value != nil {
			changed[name] = value
		}
		var err error
		if d.Body, err = json.Marshal(changed); err == nil {
			d, err = s.PutDocument(ctx, d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]any{
		"via": "x", "user": "x", "token": "x", "action": "x", "at": "2026-01-01T00:00:00Z", "number": 1000, "chain": "x", "before": "x", "digest": "x",
		"begun": map[string]any{"run": "x"},
	} {
		change(name, value)
		if v := verify(t, l); len(v.Problems) == 0 {
			t.Errorf("the member %s was changed, and that is not found", name)
		}
		change("", nil)
	}
	if v := verify(t, l); len(v.Problems) > 0 {
		t.Fatalf("as it was: %v", v.Problems)
	}
	if err := s.DeleteDocument(ctx, store.AuditKind, d.ID, 0); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, l); len(v.Problems) == 0 {
		t.Error("an entry was removed, and that is not found")
	}
}
