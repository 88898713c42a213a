package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// canary returns a text that is found wherever its bytes are: it repeats a word that
// nothing else has, so that pieces of it are found too.
func canary(who, kind string, n int) string {
	return strings.Repeat(who+"-canary-"+kind+" ", n)
}

// addTraces has a user say something of every kind that a store keeps, in small
// and in large.
func addTraces(t *testing.T, s *Store, who string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	session := who + "-canary-session"
	must(s.CreateSession(ctx, store.NewSession{ID: session, User: who + "-canary-user", Flow: "chat", Thread: who + "-canary-thread", Now: time.UnixMilli(1)}))
	for i, size := range []int{1, 40, 1500} {
		run := fmt.Sprint(who, "-canary-run-", i)
		said := func(kind string) string { return canary(who, kind, size) + fmt.Sprint(i) }
		q := store.QueuedMessage{ID: fmt.Sprint(who, "-canary-queued-", i), Session: session, Value: said("queue"), By: who + "-canary-sender", At: time.UnixMilli(1)}
		_, err := s.Enqueue(ctx, q)
		must(err)
		_, _, err = s.StartRound(ctx, q.ID, store.NewRun{ID: run, Flow: "chat", User: who + "-canary-user", At: time.UnixMilli(1)})
		must(err)
		l, err := s.Acquire(ctx, run, who+"-canary-owner", 0)
		must(err)
		x, err := s.Session(ctx, session)
		must(err)
		events := []engine.Event{
			&engine.RunStarted{
				Parallel: 1, User: who + "-canary-user", Inputs: engine.Values{{Name: "q", Value: said("input")}}, State: engine.Values{{Name: "k", Value: said("state")}},
				Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: session, At: x.Length, Body: &convo.Change{
					Create: true, Settings: &convo.Settings{System: said("system")}, Marks: &convo.Marks{Summary: &convo.Summary{Text: said("summary")}},
				}}},
			},
			&engine.EffectCompleted{Key: "n/e#1", Result: map[string]any{"r": said("result"), "list": []any{said("listed")}}, Manifest: said("manifest")},
			&engine.InterruptAnswered{ID: "i", Value: said("answer"), By: who + "-canary-by"},
			&engine.NodeCompleted{
				Path: "n", Outputs: engine.Values{{Name: "out", Value: said("output")}}, Metadata: engine.Values{{Name: "m", Value: said("metadata")}},
				State: []engine.StateChange{{Key: who + "-canary-key", Value: said("change")}},
				Contexts: []engine.ContextChange{{ID: "main", Adds: 1, Body: &convo.Change{Append: []convo.Message{{
					ID: fmt.Sprint(who, "-canary-message-", i), Role: convo.User, Text: said("text"), Reasoning: said("reasoning"),
					Parts: []convo.Part{{Kind: "file", Name: said("file"), Data: []byte(said("data"))}}, Native: []byte(`"` + said("native") + `"`),
					Calls: []convo.Call{{ID: "c", Name: "n", Arguments: said("arguments")}}, Metadata: convo.Metadata{"k": said("note")},
				}}}}},
			},
		}
		head := store.Head{
			Status: engine.Paused, Waiting: []engine.Interrupt{{ID: "i", Prompt: said("prompt")}},
			Error: &engine.Error{Code: "c", Message: said("error")},
		}
		appendOne := func(seq, first int64, head store.Head, events ...engine.Event) {
			t.Helper()
			a := store.Append{Commit: engine.Commit{Run: run, Seq: seq, First: first, At: seq, Events: events}, Fence: l.Fence, Head: head, Carryover: []byte(said("main"))}
			must(s.Append(ctx, []store.Append{a})[0])
		}
		appendOne(1, 1, head, events...)
		must(s.PutLiveText(ctx, []store.LiveTextPart{{Run: run, Fence: l.Fence, Writer: who + "-canary-writer", Data: []byte(said("live"))}}))
		must(s.Post(ctx, store.Post{Run: run, Kind: "answer", Name: "i", Value: said("post"), By: who + "-canary-poster", At: time.UnixMilli(1)}))
		for seq := range int64(3) { // each takes the room of the one before
			must(s.SaveCheckpoint(ctx, store.Checkpoint{Run: run, Seq: seq + 1, Body: []byte(strings.Repeat(said("checkpoint"), 3-int(seq)))}))
		}
		must(s.CachePut(ctx, said("cachekey"), said("cached"), time.Time{}))
		must(s.RemovePosts(ctx, []int64{int64(i + 1)})) // some are gone before
		appendOne(2, int64(len(events))+1, store.Head{Status: engine.Failed}, &engine.RunFailed{Error: &engine.Error{Code: "c", Message: said("failure")}})
	}
	_, err := s.Enqueue(ctx, store.QueuedMessage{ID: who + "-canary-waiting", Session: session, Value: canary(who, "waiting", 900), At: time.UnixMilli(1)})
	must(err)
	addTrajectories(t, s, who, "session", "alone")
	addMemory(t, s, who)
	must(s.Create(ctx, store.NewRun{ID: who + "-canary-child", Parent: who + "-canary-run-0", User: who + "-canary-user", At: time.UnixMilli(1)}))
	must(s.Create(ctx, store.NewRun{ID: who + "-canary-fork", User: "somebody else", At: time.UnixMilli(1), Base: &store.Base{Run: who + "-canary-run-1", Seq: 1}}))
	must(s.Create(ctx, store.NewRun{ID: who + "-canary-alone", User: who + "-canary-user", Origin: who + "-canary-origin", At: time.UnixMilli(1)}))
}

// traces counts, in each file next to the database, how often a text is there.
func traces(tb testing.TB, s *Store, text string) map[string]int {
	tb.Helper()
	files, err := filepath.Glob(s.path + "*")
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		if n := bytes.Count(data, []byte(text)); n > 0 {
			out[strings.TrimPrefix(f, s.path)] = n
		}
	}
	return out
}

func TestDeletingAUserLeavesNoBytesInTheFiles(t *testing.T) {
	for name, erase := range map[string]func(ctx context.Context, s *Store) error{
		"user": func(ctx context.Context, s *Store) error {
			_, err := s.DeleteUser(ctx, "bob-canary-user", store.DeleteOptions{Now: time.Now()})
			return err
		},
		"session and run": func(ctx context.Context, s *Store) error {
			_, err := s.DeleteSession(ctx, "bob-canary-session", store.DeleteOptions{Now: time.Now()})
			if err != nil {
				return err
			}
			_, err = s.DeleteRun(ctx, "bob-canary-alone", store.DeleteOptions{Now: time.Now()})
			return err
		},
		"prune": func(ctx context.Context, s *Store) error {
			for _, run := range []string{"bob-canary-fork", "bob-canary-alone"} {
				if _, err := s.DeleteRun(ctx, run, store.DeleteOptions{Now: time.Now()}); err != nil {
					return err
				}
			}
			_, err := s.PruneSessions(ctx, store.PruneOptions{Now: time.Now(), User: "bob-canary-user", OlderThan: time.Hour})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { erasesBob(t, erase) })
	}
}

// erasesBob has two people say things, deletes what one said, and looks for it.
func erasesBob(t *testing.T, erase func(ctx context.Context, s *Store) error) {
	t.Helper()
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	other := openAt(t, s.path, Options{}) // another process keeps the log
	addTraces(t, s, "alice")
	addTraces(t, s, "bob")
	if n := traces(t, s, "bob-canary"); n["-wal"] < 100 {
		t.Fatalf("the test leaves few traces: %v", n)
	}
	if err := erase(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := traces(t, s, "bob-canary"); len(n) > 0 {
		t.Errorf("traces are left: %v", n)
	}
	if n := traces(t, s, "alice-canary"); n[""] < 100 {
		t.Errorf("the other's are gone: %v", n)
	}
	for _, run := range []string{"alice-canary-run-0", "alice-canary-run-2", "alice-canary-fork"} {
		for _, err := range other.Commits(t.Context(), run, 0) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if ms, err := other.SessionMessages(t.Context(), "alice-canary-session", 0, 9); err != nil || len(ms) != 3 {
		t.Errorf("%d messages are left to the other (%v)", len(ms), err)
	}
	addTraces(t, other, "carol")
	addTraces(t, s, "bob")
}

// addAccess leaves a token and a request of a user of addTraces.
func addAccess(t *testing.T, s *Store, who string) {
	t.Helper()
	user := who + "-canary-user"
	err := s.PutToken(t.Context(), store.Token{ID: who + "-canary-token", Hash: []byte(who + "-canary-hash"), User: user, Name: who + "-canary-name", Scopes: []string{"read"}, Created: time.UnixMilli(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginRequest(t.Context(), store.ClientRequest{Key: []byte(who + "-canary-key"), User: user, Digest: []byte{1}}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func TestDeletionRemovesRowsFromEveryTable(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	addTraces(t, s, "bob")
	addAccess(t, s, "bob")
	if _, err := s.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	tables, err := s.queryTexts(t.Context(), "list tables", "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	tables = slices.DeleteFunc(tables, func(name string) bool {
		own := []string{"recall_index_config", "recall_index_data"} // of the index itself, also where it is empty
		return slices.Contains(append(own, "goose_db_version", "sqlite_sequence", "gone", "tombstone", "access_key"), name)
	})
	if len(tables) < 10 {
		t.Errorf("tables: %v", tables)
	}
	for _, name := range tables {
		var n int
		if err := s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows (%v)", name, n, err)
		}
	}
}

func TestDeletionReportsUpgradeBackups(t *testing.T) {
	s := openV2(t)
	gone, err := s.DeleteRun(t.Context(), "r", store.DeleteOptions{Now: time.Now(), Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{s.path + ".v2.backup"}; !slices.Equal(gone.Copies, want) || gone.Messages != 27 {
		t.Errorf("deleted %+v, want copies %v", gone, want)
	}
	for _, text := range []string{"said in the lane", "and another"} {
		if n := traces(t, s, text); len(n) != 1 || n[".v2.backup"] == 0 {
			t.Errorf("%q is in %v", text, n)
		}
	}
	if _, err := s.DeleteRun(t.Context(), "r", store.DeleteOptions{Now: time.Now()}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
}

// TestDeferredCompactionLeavesNoBytesAfterCompact deletes in every way with a deferred
// compaction: the rows are gone at once, and no byte is left after Compact, also if
// another process calls it.
func TestDeferredCompactionLeavesNoBytesAfterCompact(t *testing.T) {
	o := store.DeleteOptions{Now: time.Now().Add(time.Hour), DeferCompaction: true}
	for name, erase := range map[string]func(ctx context.Context, s *Store) (store.DeleteResult, error){
		"user": func(ctx context.Context, s *Store) (store.DeleteResult, error) {
			return s.DeleteUser(ctx, "bob-canary-user", o)
		},
		"session": func(ctx context.Context, s *Store) (store.DeleteResult, error) {
			if _, err := s.DeleteRun(ctx, "bob-canary-alone", o); err != nil {
				return store.DeleteResult{}, err
			}
			return s.DeleteSession(ctx, "bob-canary-session", o)
		},
		"prune": func(ctx context.Context, s *Store) (store.DeleteResult, error) {
			for _, run := range []string{"bob-canary-fork", "bob-canary-alone"} {
				if _, err := s.DeleteRun(ctx, run, o); err != nil {
					return store.DeleteResult{}, err
				}
			}
			return s.PruneSessions(ctx, store.PruneOptions{Now: o.Now, User: "bob-canary-user", OlderThan: time.Hour, DeferCompaction: true})
		},
	} {
		t.Run(name, func(t *testing.T) { defersCompaction(t, erase) })
	}
}

// defersCompaction has two people say things, deletes what one said without a compaction,
// and has another process compact the database.
func defersCompaction(t *testing.T, erase func(ctx context.Context, s *Store) (store.DeleteResult, error)) {
	t.Helper()
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	other := openAt(t, s.path, Options{})
	if done, err := s.Compact(t.Context()); done || err != nil {
		t.Errorf("a new database was compacted: %t %v", done, err)
	}
	addTraces(t, s, "alice")
	addTraces(t, s, "bob")
	gone, err := erase(t.Context(), s)
	if err != nil || !gone.Traces || gone.Sessions != 1 {
		t.Fatalf("deleted %+v, %v", gone, err)
	}
	if _, err := other.Session(t.Context(), "bob-canary-session"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the session is still there: %v", err)
	}
	if n := traces(t, s, "bob-canary"); len(n) == 0 {
		t.Error("the compaction was not deferred")
	}
	if done, err := other.Compact(t.Context()); !done || err != nil {
		t.Fatalf("not compacted: %v", err)
	}
	if n := traces(t, s, "bob-canary"); len(n) > 0 {
		t.Errorf("traces are left: %v", n)
	}
	if n := traces(t, s, "alice-canary"); n[""] < 100 {
		t.Errorf("the other's data is gone: %v", n)
	}
}

// TestDeferredDeletionWritesInProportionToWhatItDeletes deletes a small session next to
// others and counts the pages that the log gains.
func TestDeferredDeletionWritesInProportionToWhatItDeletes(t *testing.T) {
	written := func(others int) int64 {
		s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
		for i := range others {
			addTraces(t, s, fmt.Sprint("other", i))
		}
		addTraces(t, s, "bob")
		var busy, log, moved int
		if err := s.conn.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil || busy != 0 {
			t.Fatal(busy, err)
		}
		if _, err := s.DeleteSession(t.Context(), "bob-canary-session", store.DeleteOptions{Now: time.Now(), DeferCompaction: true}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	few, many := written(1), written(6)
	if few == 0 || many > few*3/2 {
		t.Errorf("deleting a session writes %d bytes beside one other session and %d beside six", few, many)
	}
}
