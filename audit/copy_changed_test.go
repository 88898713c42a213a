package audit_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// keptBeside is a store with one thing of each kind that is kept beside runs.
type keptBeside struct {
	t *testing.T
	s *sqlite.Store
}

func (k keptBeside) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k keptBeside) value(n int64, at time.Time) {
	k.t.Helper()
	changes := []engine.UserChange{{Key: "n", Value: n, Replace: true, Reducer: "sum"}}
	k.must(k.s.EditUserState(k.t.Context(), store.UserStateEdit{Write: engine.UserStateWrite{User: "ada", Flow: "f", Changes: changes}, By: "root", At: at}))
}

func (k keptBeside) document(kind, body string) {
	k.t.Helper()
	d, err := k.s.Document(k.t.Context(), kind, "ada")
	if !errors.Is(err, store.ErrNotFound) {
		k.must(err)
	}
	d.Kind, d.ID, d.User, d.Body = kind, "ada", "ada", json.RawMessage(body)
	_, err = k.s.PutDocument(k.t.Context(), d)
	k.must(err)
}

func (k keptBeside) updated(kind string) time.Time {
	k.t.Helper()
	d, err := k.s.Document(k.t.Context(), kind, "ada")
	k.must(err)
	return d.Updated
}

func (k keptBeside) remember(text string, at time.Time) {
	k.t.Helper()
	_, err := k.s.Remember(k.t.Context(), memory.Write{Scope: memory.Scope{Namespace: "n", User: "ada"}, Kind: memory.Fact, Key: "drinks", Text: text, Now: at})
	k.must(err)
}

func (k keptBeside) learn(state string) {
	k.t.Helper()
	k.must(k.s.CachePut(k.t.Context(), store.LearnedCodePrefixOf("ada")+"x", map[string]any{"state": state}, time.Time{}))
}

// all lists what is kept, without versions and times of the store.
func (k keptBeside) all() (out []any) {
	k.t.Helper()
	ctx := k.t.Context()
	for _, kind := range copiedKinds() {
		docs, err := k.s.Documents(ctx, store.DocumentFilter{Kind: kind})
		k.must(err)
		for _, d := range docs {
			out = append(out, d.Kind+" "+d.ID+" "+string(d.Body))
		}
	}
	items, err := k.s.Memories(ctx, memory.Filter{})
	k.must(err)
	values, err := k.s.UserStates(ctx, "")
	k.must(err)
	for i := range values {
		values[i].Version = 0
	}
	tokens, err := k.s.Tokens(ctx, "")
	k.must(err)
	learned, err := k.s.CacheList(ctx, store.LearnedCodePrefix, time.Now())
	k.must(err)
	return append(out, items, values, tokens, learned)
}

func TestACopyIsUpdatedWithWhatChangedSince(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
	from := keptBeside{t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "from.db"))}
	to := keptBeside{t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "to.db"))}
	from.value(1, at)
	from.remember("tea", at)
	from.learn("accepted")
	from.must(from.s.PutToken(ctx, store.Token{ID: "k", Hash: []byte("h"), User: "ada", Scopes: []string{"read"}, Created: at}))
	for _, kind := range copiedKinds() {
		from.document(kind, `{"n":1}`)
	}
	copied := func() audit.CopyResult {
		t.Helper()
		got, err := audit.Copy(ctx, from.s, to.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := from.all(), to.all(); !reflect.DeepEqual(a, b) {
			t.Errorf("the source has\n%+v and the copy\n%+v", a, b)
		}
		return got
	}
	copied()
	from.value(2, at.Add(time.Hour))
	from.remember("coffee", at.Add(time.Hour))
	from.learn("disabled")
	from.must(from.s.RevokeToken(ctx, "k", at.Add(time.Hour)))
	for _, kind := range copiedKinds() {
		for from.document(kind, `{"disabled":true}`); !from.updated(kind).After(to.updated(kind)); { // the store dates documents in milliseconds
			from.document(kind, `{"disabled":true}`)
		}
	}
	got := copied()
	if got.Values != 1 || got.Memories != 1 || got.Learned != 1 || got.Tokens != 1 || got.Documents != len(copiedKinds()) || len(got.Surplus) != 0 {
		t.Errorf("what changed: %+v", got)
	}
	if got := copied(); got.Values+got.Memories+got.Learned+got.Tokens+got.Documents != 0 {
		t.Errorf("nothing changed: %+v", got)
	}
}

func TestACopyKeepsLaterChangesAndListsWhatOnlyItHas(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
	from := keptBeside{t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "from.db"))}
	to := keptBeside{t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "to.db"))}
	from.value(1, at)
	from.document(store.UserKind, `{"n":1}`)
	if _, err := audit.Copy(ctx, from.s, to.s, nil); err != nil {
		t.Fatal(err)
	}
	to.value(5, at.Add(time.Hour))
	to.remember("tea", at)
	to.learn("accepted")
	to.must(to.s.PutToken(ctx, store.Token{ID: "k", Hash: []byte("h"), User: "ada", Scopes: []string{"read"}, Created: at}))
	for _, kind := range copiedKinds() {
		to.document(kind, `{"disabled":true}`)
	}
	want := to.all()
	got, err := audit.Copy(ctx, from.s, to.s, nil)
	if err != nil || !reflect.DeepEqual(to.all(), want) {
		t.Errorf("the copy has %+v, expected %+v: %v", to.all(), want, err)
	}
	for _, line := range []string{
		"1 remembered items", "1 access tokens", "1 learned programs", "later changes of 1 values of users", "later changes of 1 documents of a server",
		"1 documents of a server (quota)",
	} {
		if !slices.Contains(got.Surplus, line) {
			t.Errorf("%q is not in %q", line, got.Surplus)
		}
	}
}

func TestACopyHasValuesThatWereSetSinceUnlessItWasChangedItself(t *testing.T) {
	t.Parallel()
	testValuesSetSince(t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db")))
}

func testValuesSetSince(t *testing.T, to store.Store) {
	t.Helper()
	ctx := t.Context()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	if _, err := audit.Copy(ctx, from, to, nil); err != nil {
		t.Fatal(err)
	}
	sessions, err := from.Sessions(ctx, store.SessionFilter{Limit: 1})
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	set := func(s store.Store, value string) {
		t.Helper()
		change := []engine.SessionChange{{Key: "by hand", Value: value}}
		err := store.Complete(s).SetSessionState(ctx, store.StateEdit{Session: sessions[0].ID, Changes: change, By: "root", At: time.UnixMilli(1_900_000_000_000)})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(from, "x")
	for range 2 {
		if _, err := audit.Copy(ctx, from, to, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := sessionsAndHeads(t, to), sessionsAndHeads(t, from); !reflect.DeepEqual(got, want) {
			t.Errorf("the copy has\n%v, and the source\n%v", got, want)
		}
	}
	set(to, "y")
	if _, err := audit.Copy(ctx, from, to, nil); !errors.Is(err, audit.ErrDiverged) {
		t.Errorf("the state of a session was changed in the copy: %v", err)
	}
}

// copiedKinds are kinds of documents of which the tests change one each.
func copiedKinds() []string {
	return []string{store.UserKind, store.QuotaKind, store.FlowKind, store.LabelKind, store.AuditKind, "link", "of a later version"}
}

// TestASessionThatWasCopiedBeforeItsFirstRoundGetsItsRounds copies a session before and after its first round, with values
// that were set by hand.
func TestASessionThatWasCopiedBeforeItsFirstRoundGetsItsRounds(t *testing.T) {
	t.Parallel()
	testEarlySession(t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "to.db")))
}

func testEarlySession(t *testing.T, to store.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "from.db")
	at := func(do func(w *weir.Weir, s *sqlite.Store, f *weir.Flow)) { // a process of its own, which leaves the database idle
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
		if err != nil {
			t.Fatal(err)
		}
		do(w, s, weirkit.Parse(t, w, weirkit.TalkFlow))
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	at(func(w *weir.Weir, s *sqlite.Store, f *weir.Flow) {
		session := weirkit.OpenSession(t, w, f)
		c := []engine.SessionChange{{Key: "by hand", Value: "x"}}
		if err := s.SetSessionState(t.Context(), store.StateEdit{Session: session.ID, Changes: c, By: "root", At: time.UnixMilli(1_900_000_000_000)}); err != nil {
			t.Fatal(err)
		}
	})
	from := weirkit.OpenSQLite(t, path)
	for i := range 3 {
		got, err := audit.Copy(t.Context(), from, to, nil)
		if err != nil || len(got.Surplus) > 0 || (got.Sessions == 1) != (i == 0) || (got.Runs == 1) != (i > 0) {
			t.Fatalf("after %d rounds: %+v %v", i, got, err)
		}
		at(func(w *weir.Weir, _ *sqlite.Store, f *weir.Flow) {
			weirkit.SendAndWait(t, weirkit.OpenSession(t, w, f), "hello", weir.SendOptions{})
		})
	}
}
