package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
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

func TestACopyHasTheHeadsOfItsSource(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db"))
	steps := 0
	got, err := audit.Copy(t.Context(), from, to, func(done, all int) { steps = done })
	if err != nil {
		t.Fatal(err)
	}
	want, err := audit.Verify(t.Context(), from, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Runs != len(want.Runs)-want.Erased || got.Existing != 0 || steps != len(want.Runs) {
		t.Errorf("%+v after %d steps, of %d runs", got, steps, len(want.Runs))
	}
	compareSessionStates(t, from, to)
	for _, r := range want.Runs {
		if r.Erased {
			continue
		}
		if a, b := weirkit.JournalText(t, to, r.Run), weirkit.JournalText(t, from, r.Run); a != b {
			t.Errorf("run %s has another journal", r.Run)
		}
	}
	again, err := audit.Copy(t.Context(), from, to, nil)
	if err != nil || again.Runs != 0 || again.Existing != got.Runs {
		t.Errorf("again: %+v %v", again, err)
	}
}

func TestASourceInUseIsNotCopied(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db"))
	refused := func(why string) {
		t.Helper()
		if got, err := audit.Copy(t.Context(), from, to, nil); !errors.Is(err, audit.ErrNotIdle) || got.Runs != 0 {
			t.Errorf("%s: %+v %v", why, got, err)
		}
	}
	list, err := from.Sessions(t.Context(), store.SessionFilter{Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := from.Enqueue(t.Context(), store.QueuedMessage{ID: "m", Session: list[0].ID, At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	refused("a message waits")
	if err := from.RemoveQueued(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if err := from.Create(t.Context(), store.NewRun{ID: "new", Flow: "f", Fingerprint: "f", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	lease, err := from.Acquire(t.Context(), "new", "someone", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	refused("a run has an owner")
	if err := from.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := from.Post(t.Context(), store.Post{Run: "new", Kind: "cancel", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	refused("a message waits in an inbox")
}

// countedChains counts how often all chains are listed.
type countedChains struct {
	*sqlite.Store
	lists int
}

func (c *countedChains) Chains(ctx context.Context) ([]store.Chain, error) {
	c.lists++
	return c.Store.Chains(ctx)
}

func (c *countedChains) Capabilities() store.Capabilities {
	out := c.Store.Capabilities()
	out.Chains = c
	return out
}

func TestACopyListsTheChainsOfAStoreAFixedNumberOfTimes(t *testing.T) {
	t.Parallel()
	from := &countedChains{Store: weirkit.OpenSQLite(t, archiveDatabase(t))}
	to := &countedChains{Store: weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db"))}
	got, err := audit.Copy(t.Context(), from, to, nil)
	if err != nil || got.Runs < 10 || from.lists > 2 || to.lists > 2 {
		t.Errorf("%d and %d lists for %d runs: %v", from.lists, to.lists, got.Runs, err)
	}
}

func TestACopyHasWhatIsKeptBesideRuns(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
	from := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "from.db"))
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "to.db"))
	scope := memory.Scope{Namespace: "n", User: "ada"}
	var failed error
	for i, text := range []string{"tea", "coffee"} {
		_, err := from.Remember(ctx, memory.Write{Scope: scope, Kind: memory.Fact, Key: "drinks", Text: text, Tags: []string{"t"}, Now: at.Add(time.Duration(i) * time.Second)})
		failed = errors.Join(failed, err)
	}
	_, err := from.Remember(ctx, memory.Write{Scope: scope, Kind: memory.Episode, Text: "went out", At: at.Add(-time.Hour), Now: at})
	failed = errors.Join(
		failed, err,
		from.EditUserState(ctx, store.UserStateEdit{Write: engine.UserStateWrite{User: "ada", Flow: "f", Changes: []engine.UserChange{{Key: "n", Value: int64(3), Replace: true, Reducer: "sum"}}}, By: "root", At: at}),
		from.PutToken(ctx, store.Token{ID: "k", Hash: []byte("h"), User: "ada", Scopes: []string{"read"}, Created: at}),
		from.RevokeToken(ctx, "k", at),
		putDocuments(ctx, from),
		from.CachePut(ctx, store.LearnedCodePrefixOf("ada")+"x", "code", time.Time{}),
		from.CachePut(ctx, "other", "v", time.Time{}),
		tables.New(from.Trajectories()).Save(ctx, trajectorytest.Sample(t, trajectory.Key{User: "ada", Session: "s", Round: 1}, 0)),
	)
	if failed != nil {
		t.Fatal(failed)
	}
	got, err := audit.Copy(ctx, from, to, nil)
	if err != nil || got.Memories != 2 || got.Values != 1 || got.Tokens != 1 || got.Learned != 1 || got.Trajectories != 1 || got.Cached != 1 || got.Documents != 603 || got.Held != 2 {
		t.Fatalf("%+v %v", got, err)
	}
	if len(got.Left) > 0 {
		t.Errorf("left: %v", got.Left)
	}
	what := func(s *sqlite.Store) (out []any) {
		items, err := s.Memories(ctx, memory.Filter{})
		failed = errors.Join(failed, err)
		for _, i := range items {
			versions, err := s.MemoryVersions(ctx, i.ID)
			failed = errors.Join(failed, err)
			out = append(out, i, versions)
		}
		values, err := s.UserStates(ctx, "")
		failed = errors.Join(failed, err)
		tokens, err := s.Tokens(ctx, "")
		failed = errors.Join(failed, err)
		learned, err := s.CacheList(ctx, "", at)
		failed = errors.Join(failed, err)
		rows, err := s.Trajectories().Rows(ctx, trajectory.Key{User: "ada", Session: "s", Round: 1})
		failed = errors.Join(failed, err)
		docs, err := documentsOf(ctx, s)
		failed = errors.Join(failed, err)
		return append(out, values, tokens, learned, rows, docs)
	}
	if a, b := what(from), what(to); failed != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("the copy has\n%+v, and the source\n%+v %v", b, a, failed)
	}
	for _, kind := range store.HeldKinds() {
		d, err := to.Document(ctx, kind, "t")
		if err != nil || string(d.Body) != `{"n":1,"paused":true}` || !d.Due.IsZero() {
			t.Errorf("the %s of the copy is not held: %+v %v", kind, d, err)
		}
	}
	again, err := audit.Copy(ctx, from, to, nil)
	if err != nil || again.Memories+again.Values+again.Tokens+again.Learned+again.Trajectories+again.Documents != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
}

// putDocuments keeps a document of some kind, more labels than are read at once, and documents that act by themselves.
func putDocuments(ctx context.Context, s *sqlite.Store) (failed error) {
	put := func(d store.Document) {
		d.Body = json.RawMessage(`{"n":1}`)
		_, err := s.PutDocument(ctx, d)
		failed = errors.Join(failed, err)
	}
	put(store.Document{Kind: "of a later version", ID: "bob", User: "bob", Due: time.UnixMilli(1_900_000_000_000)})
	for i := range 600 {
		put(store.Document{Kind: store.LabelKind, ID: fmt.Sprint("x/", i)})
	}
	for _, kind := range store.HeldKinds() {
		put(store.Document{Kind: kind, ID: "t", User: "bob", Due: time.UnixMilli(1)})
	}
	return failed
}

// documentsOf lists the documents that are not held, without versions and times.
func documentsOf(ctx context.Context, s *sqlite.Store) (out []store.Document, failed error) {
	kinds, failed := s.DocumentKinds(ctx)
	for _, kind := range kinds {
		if slices.Contains(store.HeldKinds(), kind) {
			continue
		}
		docs, err := s.Documents(ctx, store.DocumentFilter{Kind: kind, Limit: 1000})
		failed = errors.Join(failed, err)
		for _, d := range docs {
			d.Created, d.Updated = time.Time{}, time.Time{}
			out = append(out, d)
		}
	}
	return out, failed
}
