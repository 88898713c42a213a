package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// addMemory has a session without a user remember things,
// replace and forget some.
func addMemory(t *testing.T, s *Store, who string) {
	t.Helper()
	addMemoryOf(t, s, who, memory.Scope{Namespace: who + "-canary-space", Session: who + "-canary-session"})
}

func addMemoryOf(t *testing.T, s *Store, who string, scope memory.Scope) {
	t.Helper()
	for n := range 12 {
		w := memory.Write{
			Scope: scope, Kind: memory.Fact, Text: canary(who, fmt.Sprint("memory", n), 1+n%9), Now: time.UnixMilli(int64(n)), Call: fmt.Sprint(scope, n),
			Source: memory.Source{Run: who + "-canary-run-0", Session: who + "-canary-session", Round: 1, By: "model"},
		}
		if n%3 == 0 {
			w.Key, w.Tags = fmt.Sprint(who, "-canary-key-", n%6), []string{who + "-canary-tag"}
		}
		out := remembers(t, s, w)
		if n%5 == 0 {
			if _, err := s.Forget(t.Context(), scope, out.ID, fmt.Sprint(scope, "forget", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDeletingAUserDeletesOnlyTheirMemory(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	addTraces(t, s, "bob")
	addMemoryOf(t, s, "bob", memory.Scope{Namespace: "shop", User: "bob-canary-user"})
	addMemoryOf(t, s, "bob", memory.Scope{Namespace: "desk", User: "bob-canary-user"})
	addMemoryOf(t, s, "alice", memory.Scope{Namespace: "desk", User: "alice"})
	remembers(t, s, memory.Write{
		Scope: memory.Scope{Namespace: "desk", User: "alice"}, Kind: memory.Fact, Text: "learned from another", Now: time.UnixMilli(1),
		Source: memory.Source{Run: "bob-canary-run-0", Session: "bob-canary-session", Round: 1},
	})
	gone, err := s.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()})
	if err != nil || gone.Memories != 3*8 {
		t.Errorf("%+v (%v)", gone, err)
	}
	if n := traces(t, s, "bob-canary"); len(n) > 0 {
		t.Errorf("traces are left: %v", n)
	}
	list, err := s.Memories(t.Context(), memory.Filter{})
	if err != nil || len(list) != 9 {
		t.Errorf("%d items are left (%v)", len(list), err)
	}
	checkIndex(t, s)
}

func TestForgettingLeavesNoBytesInTheFiles(t *testing.T) {
	for name, bobs := range map[string]func(w *memory.Write) memory.Filter{
		"user": func(w *memory.Write) memory.Filter {
			w.Scope.User = "bob-canary-user"
			return memory.Filter{User: w.Scope.User}
		},
		"namespace": func(w *memory.Write) memory.Filter {
			w.Scope.Namespace = "bob-canary-space"
			return memory.Filter{Namespace: w.Scope.Namespace}
		},
		"session": func(w *memory.Write) memory.Filter {
			w.Scope = memory.Scope{Namespace: "shop", Session: "bob-canary-guest"}
			return memory.Filter{Session: w.Scope.Session}
		},
		"id": func(w *memory.Write) memory.Filter {
			w.ID = fmt.Sprint("bobs", w.Now.UnixMilli())
			return memory.Filter{Prefix: "bobs"}
		},
		"kind": func(w *memory.Write) memory.Filter {
			w.Kind = memory.Episode
			return memory.Filter{Kind: w.Kind}
		},
		"source": func(w *memory.Write) memory.Filter {
			w.Source.Run = "bob-canary-run"
			return memory.Filter{From: w.Source.Run}
		},
	} {
		t.Run(name, func(t *testing.T) { forgetsBob(t, bobs) })
	}
}

// forgetsBob has bobs change half of what is remembered, forgets what it says, and
// looks for it.
func forgetsBob(t *testing.T, bobs func(w *memory.Write) memory.Filter) {
	t.Helper()
	const each = 80
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	other := openAt(t, s.path, Options{}) // another process keeps the log
	alice := memory.Scope{Namespace: "shop", User: "alice"}
	var f memory.Filter
	for n := range each {
		w := memory.Write{Scope: alice, Kind: memory.Fact, Text: fmt.Sprint("alice-canary and more words ", n), Now: time.UnixMilli(int64(n))}
		remembers(t, s, w)
		w.Text = fmt.Sprintf("bob-canary%dsecret and more words", n)
		f = bobs(&w)
		remembers(t, s, w)
	}
	if n := traces(t, s, "bob-canary"); n["-wal"] < each {
		t.Fatalf("the test leaves few traces: %v", n)
	}
	gone, err := s.ForgetMemories(t.Context(), f)
	if err != nil || gone.Memories != each {
		t.Fatal(gone, err)
	}
	for _, text := range []string{"bob-canary", "canary1secret", "canary79", "9secret"} {
		if n := traces(t, s, text); len(n) > 0 {
			t.Errorf("%s is left: %v", text, n)
		}
	}
	found, err := other.Recall(t.Context(), memory.Query{Scope: alice, Text: "alice canary"})
	if err != nil || found.Total != each {
		t.Errorf("of another's %d are found (%v)", found.Total, err)
	}
	checkIndex(t, s)
}

func remembers(t *testing.T, s *Store, w memory.Write) memory.WriteResult {
	t.Helper()
	out, err := s.Remember(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkIndex has SQLite check the index, and that it holds the items and no more.
func checkIndex(t *testing.T, s *Store) {
	t.Helper()
	err := s.write(t.Context(), "check the index", func(ctx context.Context) error {
		_, err := s.conn.ExecContext(ctx, "INSERT INTO recall_index (recall_index, rank) VALUES ('integrity-check', 1)")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var wrong int
	err = s.reader.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM recall_item WHERE num NOT IN (SELECT rowid FROM recall_index))
		+ (SELECT count(*) FROM recall_index WHERE rowid NOT IN (SELECT num FROM recall_item))`).Scan(&wrong)
	if err != nil || wrong != 0 {
		t.Errorf("%d items and entries of the index have no counterpart (%v)", wrong, err)
	}
}

func TestForgetOverwritesTextNowAndIndexWithNextDeletion(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	scope := memory.Scope{Namespace: "shop", User: "ada"}
	out := remembers(t, s, memory.Write{Scope: scope, Kind: memory.Fact, Text: "the canary sings", Now: time.UnixMilli(1)})
	if was, err := s.Forget(t.Context(), scope, out.ID, ""); err != nil || !was {
		t.Fatal(was, err)
	}
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		t.Fatal(err)
	}
	if n := traces(t, s, "canary sings"); n[""] > 0 {
		t.Errorf("the file has the text: %v", n)
	}
	if _, err := s.DeleteUser(t.Context(), "nobody", store.DeleteOptions{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if n := traces(t, s, "canary"); len(n) > 0 {
		t.Errorf("traces are left: %v", n)
	}
}

func TestQueryReadsTermIndexOnce(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	args := append(queryArgs(1, memory.Query{}), matchAny("1·", memory.SearchTerms("boat")))
	var plan []string
	err := s.query(t.Context(), func(row scanner) error {
		var id, parent, unused int
		var detail string
		err := row.Scan(&id, &parent, &unused, &detail)
		plan = append(plan, detail)
		return err
	}, "EXPLAIN QUERY PLAN SELECT count(*)"+fromMatching, args...)
	if err != nil || len(plan) == 0 || !strings.Contains(plan[0], "recall_index VIRTUAL TABLE") {
		t.Errorf("%q (%v)", plan, err)
	}
}

func TestRankingWithMoreMatchesThanCandidates(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	scope := userOf(0)
	remembers(t, s, memory.Write{Scope: scope, Kind: memory.Fact, Text: "the boat is blue", Now: time.UnixMilli(7)})
	if err := fillMemory(t.Context(), s, 1, memory.MaxCandidates+200); err != nil {
		t.Fatal(err)
	}
	found, err := s.Recall(t.Context(), memory.Query{Scope: scope, Text: "the user's boat is blue?", Limit: 2})
	if err != nil || found.Total != memory.MaxCandidates+201 || len(found.Items) != 2 || found.Items[0].Text != "the boat is blue" {
		t.Errorf("%+v (%v)", found, err)
	}
	checkIndex(t, s)
}

func TestUpgradedVersion3DatabaseHasMemory(t *testing.T) {
	s := openV3(t)
	scope := userOf(1)
	remembers(t, s, memory.Write{Scope: scope, Kind: memory.Fact, Text: "the boat is blue", Now: time.UnixMilli(7)})
	found, err := s.Recall(t.Context(), memory.Query{Scope: scope, Text: "boat"})
	if err != nil || found.Total != 1 {
		t.Error(found, err)
	}
	checkIndex(t, s)
}

// FuzzAnyTextIsAValidQuery remembers any text and looks for any, and for
// itself.
func FuzzAnyTextIsAValidQuery(f *testing.F) {
	for _, text := range []string{`"`, `a" OR "b`, "NEAR(a b)", "北京", "1·a", "a*", "\x00", "🏳️‍🌈", "terms : a", "İ"} {
		f.Add(text, "a")
		f.Add("a", text)
	}
	s, err := Open(f.Context(), filepath.Join(f.TempDir(), "weir.db"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, text, question string) {
		if _, err := s.Recall(t.Context(), memory.Query{Scope: userOf(0), Text: question}); err != nil {
			t.Fatal(err)
		}
		w, err := memory.Write{Scope: userOf(0), Kind: memory.Fact, Key: "k", Text: text, Now: time.UnixMilli(1)}.Normalized()
		if err != nil {
			return
		}
		remembers(t, s, w)
		found, err := s.Recall(t.Context(), memory.Query{Scope: userOf(0), Text: text})
		if err != nil || (found.Total == 1) != (len(memory.Terms(text)) > 0) {
			t.Errorf("%q finds %d (%v)", text, found.Total, err)
		}
	})
}
