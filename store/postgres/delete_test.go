//go:build unix

package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

const canary = "canary7f3a"

// rowsWith counts, by table, the rows of a schema that have a text in any column, as text or as bytes.
func rowsWith(t *testing.T, server *pgtest.Server, schema, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for table := range strings.FieldsSeq(server.SQL(t, fmt.Sprintf(
		"SELECT relname FROM pg_class WHERE relnamespace = '%s'::regnamespace AND relkind = 'r'", schema))) {
		// Bytes in the text of a row are hexadecimal digits.
		n := server.SQL(t, fmt.Sprintf("SELECT count(*) FROM %s.%s r WHERE r::text LIKE '%%%s%%' OR r::text LIKE '%%%x%%'", schema, table, text, text))
		if n != "0" {
			out[table] = n
		}
	}
	return out
}

// TestNoRowHasATextOfADeletedUser writes a text wherever a user can leave one, deletes the user, and looks for it in
// every table of the schema.
func TestNoRowHasATextOfADeletedUser(t *testing.T) {
	server := pgtest.Start(t)
	ctx := t.Context()
	s := openAt(t, server.Schema(t), Options{MaxConnections: 2})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at, user := time.UnixMilli(1_800_000_000_000), canary
	must(s.CreateSession(ctx, store.NewSession{
		ID: canary, User: user, Flow: "f", Now: at, FirstMessage: &store.QueuedMessage{ID: canary + "-1", Value: canary, By: canary, At: at},
	}))
	lease := store.Lease{Run: canary + "-1", Owner: canary, TTL: time.Hour}
	interrupts := []engine.Interrupt{{ID: canary}}
	must(s.Append(ctx, []store.Append{{
		Commit: engine.Commit{Run: canary + "-1", Seq: 1, First: 1, At: at.UnixMilli(), Events: []engine.Event{
			&engine.RunStarted{Parallel: 1, Session: canary, Round: 1, User: user, Contexts: []engine.ContextChange{
				{ID: "main", Create: true, Session: canary, Body: &convo.Change{Create: true, Append: []convo.Message{{ID: canary, Role: convo.User, Text: canary}}}},
			}},
		}},
		Fence: 1, Head: store.Head{Status: engine.Paused, Waiting: interrupts}, Acquire: &lease, Carryover: []byte(canary),
		Start: &store.RunStart{NewRun: store.NewRun{ID: canary + "-1", Flow: "f", User: user, At: at}, Message: canary + "-1"},
	}})[0])
	must(s.RequestLiveText(ctx, []string{canary + "-1"}, true, time.Hour))
	must(s.PutLiveText(ctx, []store.LiveTextPart{{Run: canary + "-1", Fence: 1, Writer: canary, Data: []byte(canary)}}))
	must(s.Release(ctx, store.Lease{Run: canary + "-1", Owner: canary, Fence: 1}))
	must(s.Post(ctx, store.Post{Run: canary + "-1", Kind: "answer", Name: canary, Value: canary, By: canary, At: at}))
	must(s.SaveCheckpoint(ctx, store.Checkpoint{Run: canary + "-1", Seq: 1, Body: []byte(canary)}))
	_, err := s.Enqueue(ctx, store.QueuedMessage{ID: canary + "-2", Session: canary, Value: canary, By: canary, At: at})
	must(err)
	must(s.CachePut(ctx, store.CachePrefixOf(user)+canary, canary, time.Time{}))
	must(s.CachePut(ctx, store.LearnedCodePrefixOf("other")+"x", map[string]any{"run": canary + "-1"}, time.Time{}))
	must(s.EditUserState(ctx, store.UserStateEdit{Write: engine.UserStateWrite{User: user, Flow: "f", Changes: []engine.UserChange{{Key: canary, Value: canary, Replace: true}}}, By: canary, At: at}))
	for _, d := range []store.Document{{Kind: store.NoticeKind, ID: "1", User: user}, {Kind: "k", ID: "2", Run: canary + "-1"}} {
		d.Body = json.RawMessage(`"` + canary + `"`)
		_, err = s.PutDocument(ctx, d)
		must(err)
	}
	must(s.PutToken(ctx, store.Token{ID: canary, Hash: []byte(canary), User: user, Name: canary, Created: at}))
	_, err = s.BeginRequest(ctx, store.ClientRequest{Key: []byte("k"), User: user, Digest: []byte(canary)}, time.Hour)
	must(err)
	for _, text := range []string{canary, canary + " again"} {
		_, err = s.Remember(ctx, memory.Write{Scope: memory.Scope{Namespace: "n", User: user}, Kind: memory.Fact, Key: "k", Text: text, Call: canary, Now: at})
		must(err)
		_, err = s.Remember(ctx, memory.Write{Scope: memory.Scope{Namespace: "n", User: user}, Kind: memory.Fact, Key: "k", Text: text, Now: at})
		must(err)
	}
	_, err = s.Remember(ctx, memory.Write{Scope: memory.Scope{Namespace: "n", User: "other"}, Kind: memory.Fact, Text: "of another", Source: memory.Source{Run: canary + "-1", Session: canary}, Now: at})
	must(err)
	must(tables.New(s.Trajectories()).Save(ctx, trajectorytest.Sample(t, trajectory.Key{User: user, Session: canary, Round: 1}, 0)))

	before := rowsWith(t, server, "s1", canary)
	for _, table := range []string{
		"session", "run", "run_commit", "message", "inbox", "live_text", "checkpoint", "queue", "cache", "user_value", "document", "access_token",
		"access_request", "recall_scope", "recall_item", "recall_past", "recall_term", "trajectory_round",
	} {
		if before[table] == "" {
			t.Errorf("table %s does not have the text before the deletion", table)
		}
	}
	gone, err := s.DeleteUser(ctx, user, store.DeleteOptions{Now: at.Add(2 * time.Hour)})
	if err != nil || gone.Sessions != 1 || gone.Runs != 1 || gone.Remains == "" {
		t.Fatalf("%+v %v", gone, err)
	}
	if after := rowsWith(t, server, "s1", canary); len(after) != 0 {
		t.Errorf("tables that have the text after the deletion: %v", after)
	}
	if n := server.SQL(t, "SELECT count(*) FROM s1.tombstone"); n != "1" {
		t.Errorf("%s tombstones", n)
	}
}

// deleteWhileForking makes a run and forks of it in store a, while store b deletes the run.
func deleteWhileForking(t *testing.T, a, b *Store, base string) {
	t.Helper()
	w, err := newTestWriter(a, base)
	if err == nil {
		err = w.append(t.Context())
	}
	if err == nil {
		err = a.Release(t.Context(), w.lease)
	}
	if err != nil {
		t.Fatal(err)
	}
	var forks sync.WaitGroup
	var made [8]error
	for i := range made {
		forks.Go(func() {
			made[i] = a.Create(t.Context(), store.NewRun{ID: fmt.Sprint(base, "-", i), Base: &store.Base{Run: base, Seq: 1}, At: time.UnixMilli(1)})
		})
	}
	gone, err := b.DeleteRun(t.Context(), base, store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forks.Wait()
	n := 0
	for i, err := range made {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, store.ErrNotFound):
			t.Errorf("fork %d: %v", i, err)
		}
	}
	if n != len(gone.Forks) || gone.Runs != 1+n {
		t.Errorf("%d forks were made before the deletion, which deleted %+v", n, gone)
	}
	ids, err := a.FindRunIDs(t.Context(), "base")
	if err != nil || len(ids) != 0 {
		t.Errorf("left: %v %v", ids, err)
	}
}

// TestForksMadeDuringADeletionDoNotShareWhatIsDeleted makes forks of a run in one store while another deletes it.
func TestForksMadeDuringADeletionDoNotShareWhatIsDeleted(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	a, b := openAt(t, url, Options{MaxConnections: 4}), openAt(t, url, Options{MaxConnections: 2})
	for round := range 5 {
		deleteWhileForking(t, a, b, fmt.Sprint("base", round))
	}
	if orphans := server.SQL(t, "SELECT count(*) FROM s1.run_commit WHERE run NOT IN (SELECT num FROM s1.run)"); orphans != "0" {
		t.Errorf("%s commits of no run", orphans)
	}
}

func TestLargePruningTakesSeveralTransactions(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Schema(t), Options{MaxConnections: 2})
	at := time.UnixMilli(1_800_000_000_000)
	const sessions = 2*maxPruned + 10
	for i := range sessions {
		n := store.NewSession{ID: fmt.Sprint("s", i), User: "u", Flow: "f", Now: at.Add(time.Duration(i))}
		if i%3 == 2 {
			n.Parent = fmt.Sprint("s", i-1) // whose fork must go with it or before it
		}
		if err := s.CreateSession(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	p := store.PruneOptions{Now: at.Add(time.Hour), OlderThan: time.Minute, DryRun: true}
	would, err := s.PruneSessions(t.Context(), p)
	if err != nil || would.Sessions != sessions {
		t.Errorf("a dry run: %+v %v", would, err)
	}
	p.DryRun = false
	did, err := s.PruneSessions(t.Context(), p)
	if err != nil || did.Sessions != sessions || len(did.Kept) != 0 {
		t.Errorf("%+v %v", did, err)
	}
}

// TestVacuumedTablesAreThoseWithDeletions compares the list of tables with the schema.
func TestVacuumedTablesAreThoseWithDeletions(t *testing.T) {
	server := pgtest.Start(t)
	openAt(t, server.Schema(t), Options{MaxConnections: 1})
	kept := []string{"access_key", "deletion", "flow", "goose_db_version", "tombstone", "transaction_mark"}
	var list []string
	for name := range strings.SplitSeq(vacuumedTables, ",") {
		list = append(list, strings.TrimSpace(name))
	}
	list = append(list, kept...)
	slices.Sort(list)
	all := strings.Fields(server.SQL(t, "SELECT relname FROM pg_class WHERE relnamespace = 's1'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE \"C\""))
	if !slices.Equal(all, list) {
		t.Errorf("the schema has the tables\n%v, and known are\n%v", all, list)
	}
}
