package docgen_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// queryFlow is a flow that leaves something for every query to find.
const queryFlow = `
weir: 1
name: asked
context: {model: script/demo}
nodes:
  reply: {type: llmRequest, in: {message: "Good morning."}}
  ask: {type: userInput, after: reply, with: {prompt: "And?"}}
outputs: {reply: "{{ reply.text }}"}
`

func TestDocQueriesReturnRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"script": recorded.NewScripted("Hello.")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	f, err := w.Parse("asked.yaml", []byte(queryFlow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	seedSession(t, s)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	queries := fences(t, filepath.Join(root, "docs", "store.md"), "sql")
	if len(queries) < 3 {
		t.Errorf("only %d queries were found", len(queries))
	}
	for line, query := range queries {
		if err := checkQuery(t, db, query); err != nil {
			t.Errorf("store.md:%d: %v", line, err)
		}
	}
}

// seedSession makes a session with a round that has not ended, and a fork of the demo's run.
func seedSession(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx, now := t.Context(), time.UnixMilli(1)
	_, err := s.Enqueue(ctx, store.QueuedMessage{ID: "q", Session: "talk", Value: "Hello", At: now})
	if !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a message to no session: %v", err)
	}
	err = s.CreateSession(ctx, store.NewSession{ID: "talk", User: "ada", Flow: "asked", Now: now})
	if err == nil {
		_, err = s.Enqueue(ctx, store.QueuedMessage{ID: "q", Session: "talk", Value: "Hello", At: now})
	}
	if err == nil {
		err = s.Create(ctx, store.NewRun{ID: "fork", Flow: "asked", At: now, Base: &store.Base{Run: "demo", Seq: 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	said := convo.Change{Create: true, Append: []convo.Message{{ID: "1/ask", Role: convo.User, Text: "Hello"}}}
	commit := engine.Commit{Run: "round", Seq: 1, First: 1, At: 1, Events: []engine.Event{
		&engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: "talk", Adds: 1, Body: &said}}},
	}}
	if err := s.Append(ctx, []store.Append{{
		Commit: commit, Acquire: &store.Lease{Run: "round", Owner: "me", Fence: 1, TTL: time.Hour}, Fence: 1,
		Start: &store.RunStart{NewRun: store.NewRun{ID: "round", Flow: "asked", At: now}, Message: "q"},
	}})[0]; err != nil {
		t.Fatal(err)
	}
}

// checkQuery is nil where the query gives a row.
func checkQuery(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return errors.Join(errors.New("no row"), rows.Err())
	}
	return rows.Err()
}
