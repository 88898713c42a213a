package docgen_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/store/sqlite"
)

// asked is a flow that leaves something for every query to find.
const asked = `
weir: 1
name: asked
context: {model: script/demo}
nodes:
  reply: {type: llmRequest, in: {message: "Good morning."}}
  ask: {type: userInput, after: reply, with: {prompt: "And?"}}
outputs: {reply: "{{ reply.text }}"}
`

func TestTheQueriesOfTheDocsFindWhatTheySay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"script": recorded.Script("Hello.")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	f, err := w.Parse("asked.yaml", []byte(asked))
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
		if err := found(t, db, query); err != nil {
			t.Errorf("store.md:%d: %v", line, err)
		}
	}
}

// found is nil where the query gives a row.
func found(t *testing.T, db *sql.DB, query string) error {
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
