package audit_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// notCopied are the tables of a file of which a copy does not have all rows, and why.
func notCopied() map[string]string {
	return map[string]string{
		"access_request":   "requests that clients repeat under an idempotency key, kept for a day; they are known to the server that took them",
		"checkpoint":       "snapshots that are made again",
		"gone":             "numbers that were given up in this file; those of a copy are its own",
		"live_reader":      "who reads the text of calls in flight",
		"live_text":        "the text of calls in flight, which may be lost",
		"inbox":            "a source with a message that waits is refused",
		"notice":           "news that a server passes on within seconds; the number that is left is listed",
		"queue":            "of a message that was taken, the round has the text; a source with one that waits is refused",
		"run_crash":        "crashes since the last commit of a run",
		"value":            "texts that equal ones in other trees of runs are kept apart or together",
		"value_part":       "parts of those",
		"flow":             "flows that no run names any more",
		"program":          "names of those",
		"message_page":     "hashes for searches in a long history, which are made again",
		"goose_db_version": "versions of the schema",
		"sqlite_sequence":  "numbers of rows",
		"recall_call":      "calls that their runs have recorded; a run that crashed during one writes the same text again",
		"recall_index":     "terms of items, and four tables with its parts",
	}
}

// fillTables makes rows in all tables of which a copy has the rows, beside runs.
func fillTables(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
	var failed error
	for i, text := range []string{"tea", "coffee"} {
		_, err := s.Remember(ctx, memory.Write{Scope: memory.Scope{Namespace: "n", User: "ada"}, Kind: memory.Fact, Key: "drinks", Text: text, Now: at.Add(time.Duration(i) * time.Second)})
		failed = errors.Join(failed, err)
	}
	_, keyed := s.AccessKey(ctx, "server", []byte("secret"))
	_, doc := s.PutDocument(ctx, store.Document{Kind: "conversation", ID: "c", User: "ada", Body: json.RawMessage(`{"items": ["a"]}`)})
	list, err := s.Sessions(ctx, store.SessionFilter{Limit: 1, User: "anna"})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	parent := list[0]
	set := func(session, key string, value engine.Value, remove bool) {
		c := engine.SessionChange{Key: key, Value: value, Delete: remove}
		failed = errors.Join(failed, s.SetSessionState(ctx, store.StateEdit{Session: session, By: "root", At: at, Changes: []engine.SessionChange{c}}))
	}
	failed = errors.Join(
		failed, keyed, doc,
		s.EditUserState(ctx, store.UserStateEdit{Write: engine.UserStateWrite{User: "ada", Flow: "f", Changes: []engine.UserChange{{Key: "n", Value: int64(3), Replace: true, Reducer: "sum"}}}, By: "root", At: at}),
		s.PutToken(ctx, store.Token{ID: "k", Hash: []byte("h"), User: "ada", Scopes: []string{"read"}, Created: at}),
		s.CachePut(ctx, store.LearnedCodePrefixOf("ada")+"x", "code", time.Time{}),
		s.CachePut(ctx, store.CachePrefixOf("ada")+"y", map[string]any{"v": 1.5}, time.Now().Add(24*time.Hour).Truncate(time.Millisecond)),
		s.ExpireSession(ctx, parent.ID, at.Add(time.Hour)),
		s.CreateSession(ctx, store.NewSession{ID: "empty", User: "dora", Flow: "talk", Thread: "t", Now: at, Expires: at.Add(time.Minute)}),
		s.CreateSession(ctx, store.NewSession{ID: "fork", User: "anna", Flow: parent.Flow, Parent: parent.ID, ParentLength: 4, Now: at}),
		s.CreateSession(ctx, store.NewSession{ID: "fork of a fork", User: "anna", Flow: parent.Flow, Parent: "fork", ParentLength: 2, Now: at}),
		s.ActivateSession(ctx, "fork"),
		tables.New(s.Trajectories()).Save(ctx, trajectorytest.Sample(t, trajectory.Key{User: "ada", Session: "s", Round: 1}, 0)),
	)
	set("empty", "a", []any{int64(1), nil}, false)
	set("fork", "rounds", nil, true)
	set("fork", "said", "by hand", false)
	if failed != nil {
		t.Fatal(failed)
	}
}

// tableCounts returns the number of rows of each table of a file.
func tableCounts(t *testing.T, path string) map[string]int {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var list string
	if err := db.QueryRowContext(t.Context(), "SELECT group_concat(name) FROM sqlite_master WHERE type = 'table'").Scan(&list); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for table := range strings.SplitSeq(list, ",") {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil { // a name of the schema
			t.Fatal(err)
		}
		out[table] = n
	}
	return out
}

// sessionsAndHeads lists what a copy must have besides numbers of rows.
func sessionsAndHeads(t *testing.T, s store.Store) (out []any) {
	t.Helper()
	full := store.Complete(s)
	list, err := full.Sessions(t.Context(), store.SessionFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b store.Session) int { return strings.Compare(a.ID, b.ID) })
	for _, x := range list {
		state, err := full.SessionState(t.Context(), x.ID)
		if err != nil {
			t.Fatal(err)
		}
		active, err := full.FindSession(t.Context(), x.User, x.Flow, "")
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		for _, v := range state {
			values[v.Key] = []any{v.Value, v.Reducer, v.By, v.Round}
		}
		out = append(out, []any{x.ID, x.User, x.Flow, x.Thread, x.Parent, x.ParentLength, x.ParentRound, x.Rounds, x.Length, x.Created.UnixMilli(), x.Expires.UnixMilli(), active.ID, values})
	}
	r, err := audit.Verify(t.Context(), s, audit.Options{})
	if err != nil || !r.OK {
		t.Fatalf("%+v %v", r, err)
	}
	var heads []string
	for _, x := range r.Runs {
		heads = append(heads, x.Head.String()+map[bool]string{true: " erased"}[x.Erased])
	}
	slices.Sort(heads)
	entries, err := full.CacheList(t.Context(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := full.AccessKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(out, heads, entries, keys)
}

// testCopiedTables copies a file to a store and back into a file, and compares each table of the files.
func testCopiedTables(t *testing.T, between store.Store) {
	t.Helper()
	first, last := archiveDatabase(t), filepath.Join(t.TempDir(), "last.db")
	from, to := weirkit.OpenSQLite(t, first), weirkit.OpenSQLite(t, last)
	fillTables(t, from)
	for _, step := range [][2]store.Store{{from, between}, {between, to}} {
		for i := range 2 { // again: nothing is lacking
			got, err := audit.Copy(t.Context(), step[0], step[1], nil)
			if err != nil || len(got.Left) > 0 || (got.Erased == 0) != (i == 1) || (got.Sessions == 0) != (i == 1) {
				t.Fatalf("copy %d: %+v %v", i+1, got, err)
			}
		}
	}
	want, got := sessionsAndHeads(t, from), sessionsAndHeads(t, to)
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("the copy has\n%v, and the source\n%v", got[i], want[i])
		}
	}
	rows, have := tableCounts(t, first), tableCounts(t, last)
	for table, n := range rows {
		if strings.HasPrefix(table, "recall_index") || notCopied()[table] != "" {
			continue
		}
		if n == 0 && !strings.HasPrefix(table, "trajectory_") {
			t.Errorf("table %s has no rows: the test shows nothing", table)
		}
		if have[table] != n {
			t.Errorf("table %s has %d rows in the copy and %d in the source; copy them, or say in notCopied why not", table, have[table], n)
		}
	}
}

func TestACopyHasTheRowsOfEachTable(t *testing.T) {
	t.Parallel()
	testCopiedTables(t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "between.db")))
}
