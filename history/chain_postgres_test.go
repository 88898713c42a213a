//go:build unix

package history_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
	"github.com/weir-run/weir/store/sqlite"
	memorytool "github.com/weir-run/weir/tool/memory"
)

// openPostgres opens a store in a server of the test and connects to its database.
func openPostgres(t *testing.T) (store.Store, *sql.DB) {
	t.Helper()
	url := pgtest.Start(t).Schema(t)
	s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	return s, openDatabase(t, "pgx", url)
}

func openDatabase(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSQLViewsOnPostgreSQLMatchChainOfWorkAPI(t *testing.T) {
	t.Parallel()
	s, db := openPostgres(t)
	testSQLViews(t, s, db)
}

// sharedViews are the views of both stores, with an order of their rows.
func sharedViews() map[string]string {
	return map[string]string{
		"chain_of_work": "seq", "chain_of_work_step": "sequence", "journal": "seq", "message_text": "context, position", "session_message": "position",
		"session_state": "key", "user_state": "key", "remembered": "key",
	}
}

// talkingState is a flow with rows in each of the views.
const talkingState = `
weir: 1
name: talk
inputs: {message: {type: text, required: true}}
context: {model: echo/m}
state:
  rounds: {scope: session, initial: 0, reducer: sum}
  heard: {scope: user, initial: [], reducer: append}
nodes:
  note: {type: transform, with: {state: {rounds: "1", heard: run.inputs.message, "$one": "{'$two': run.inputs.message}"}}}
  keep: {type: remember, with: {text: "Said {{ run.inputs.message }}.", key: said}}
  ask: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}, after: [note, keep]}
outputs: {answer: "{{ ask.text }}"}
`

// TestSQLViewsHaveTheSameColumnsAndRowsInBothStores does the same in a file and in a server.
func TestSQLViewsHaveTheSameColumnsAndRowsInBothStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	onFile, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := viewsAfterRuns(t, onFile, openDatabase(t, "sqlite", path))
	onServer, db := openPostgres(t)
	servers := viewsAfterRuns(t, onServer, db)
	for view := range sharedViews() {
		file, server := files[view], servers[view]
		if len(file) < 2 {
			t.Errorf("%s has no rows: the test shows nothing", view)
		}
		for i := range max(len(file), len(server)) {
			if at(file, i) != at(server, i) {
				t.Errorf("%s has %d and %d rows, which differ in row %d:\n%.900s\n%.900s", view, len(file), len(server), i, at(file, i), at(server, i))
				break
			}
		}
	}
}

// viewsAfterRuns executes runs and rounds of a session, and returns what each view shows then.
func viewsAfterRuns(t *testing.T, s store.Store, db *sql.DB) map[string][]string {
	t.Helper()
	tools, err := memorytool.Tools(s.(memory.Store), memorytool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := weirkit.Open(t, weir.Options{
		Store: s, Types: []weir.Type{stateWriterType()}, Tools: tools, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}},
	})
	session := weirkit.OpenSession(t, w, weirkit.Parse(t, w, talkingState))
	for _, message := range []string{"hello", `"quoted" \u0000 ünïcode`} {
		weirkit.SendAndWait(t, session, message, weir.SendOptions{})
	}
	for seed := range uint64(4) {
		x := &randomWrites{rand.New(rand.NewPCG(seed, 2))}
		weirkit.RunToEnd(t, w, weirkit.Parse(t, w, x.flow()))
	}
	out := map[string][]string{}
	for view, order := range sharedViews() {
		out[view] = viewDump(t, db, view, order)
	}
	return out
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(none)"
}

// viewDump returns the names of a view's columns and its rows without ids and times, run by run.
func viewDump(t *testing.T, db *sql.DB, view, order string) []string {
	t.Helper()
	group := map[string]string{"chain_of_work": "started", "chain_of_work_step": "execution_id", "journal": "at", "message_text": "run", "session_message": "created_at"}[view]
	if group != "" {
		order = group + ", " + order
	}
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+view+" ORDER BY "+order)
	if err != nil {
		t.Fatalf("%s: %v", view, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		var line strings.Builder
		for i, name := range names {
			if view == "journal" && name == "seq" {
				continue
			}
			line.WriteString(name + "=" + plainCell(t, name, *values[i].(*any)) + " ")
		}
		out = append(out, line.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", view, err)
	}
	slices.Sort(out) // ids order the runs of each store differently
	if view == "journal" {
		out = slices.Compact(out) // which events share a commit depends on the time that commits take
	}
	return append([]string{strings.Join(names, " ")}, out...)
}

// plainCell returns a value in a form that does not depend on the driver.
func plainCell(t *testing.T, column string, value any) string {
	t.Helper()
	switch column {
	case "execution_id", "run", "session", "id", "at", "created_at", "changed_at", "written", "started", "ended", "execution_time", "events":
		return fmt.Sprint(value != nil)
	case "input_context", "output_result", "input_data", "output_data", "ai_metadata", "value":
		if value == nil {
			return "NULL"
		}
		if b, ok := value.([]byte); ok {
			value = string(b)
		}
		if text, ok := value.(string); ok {
			return fmt.Sprint(weirkit.PlainJSON(t, text))
		}
	}
	if at, ok := value.(time.Time); ok {
		return at.String()
	}
	if v := reflect.ValueOf(value); v.IsValid() && v.CanFloat() {
		return fmt.Sprint(v.Float())
	}
	return fmt.Sprint(value)
}
