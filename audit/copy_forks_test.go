package audit_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func TestACopyHasRoundsOfForksOfSessionsWithoutRounds(t *testing.T) {
	t.Parallel()
	testForkedSessions(t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db")))
}

// testForkedSessions copies forks of sessions that have no round, directly and over several, and copies again after
// rounds of them.
func testForkedSessions(t *testing.T, to store.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "from.db")
	var ids []string // of the first session, of "empty", "inner" and "deep"
	inProcess := func(do func(say func(session string), fork func(session string, at int) string, w *weir.Weir, f *weir.Flow)) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
		if err != nil {
			t.Fatal(err)
		}
		f := weirkit.Parse(t, w, strings.Replace(weirkit.TalkFlow, "nodes:\n", rememberingState, 1))
		say := func(session string) {
			t.Helper()
			x, err := w.Session(t.Context(), f, weir.SessionOptions{ID: session})
			if err != nil {
				t.Fatal(err)
			}
			weirkit.SendAndWait(t, x, "hello", weir.SendOptions{})
		}
		fork := func(session string, at int) string {
			t.Helper()
			id, err := w.ForkSession(t.Context(), session, at)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			return id
		}
		do(say, fork, w, f)
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inProcess(func(say func(string), fork func(string, int) string, w *weir.Weir, f *weir.Flow) {
		first := weirkit.OpenSession(t, w, f).ID
		say(first)
		say(first)
		ids = append(ids, first)
		deep := fork(fork(fork(first, 4), 3), 2)
		say(first)
		say(deep)
		say(fork(fork(first, 0), 0))
	})
	from := weirkit.OpenSQLite(t, path)
	for i := range len(ids) + 1 {
		if _, err := audit.Copy(t.Context(), from, to, nil); err != nil {
			t.Fatalf("copy %d: %v", i+1, err)
		}
		if got, want := sessionsAndHeads(t, to), sessionsAndHeads(t, from); !reflect.DeepEqual(got, want) {
			t.Fatalf("copy %d has\n%v, and the source\n%v", i+1, got, want)
		}
		if i < len(ids) {
			inProcess(func(say func(string), _ func(string, int) string, _ *weir.Weir, _ *weir.Flow) { say(ids[i]) })
		}
	}
}
