package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/store"
)

// TestSyncIsThatOfTheWriter enumerates the modes, on a new file and on one that exists.
func TestSyncIsThatOfTheWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	for _, c := range []struct{ name, pragma string }{{"", "2"}, {"full", "2"}, {"normal", "1"}, {"full", "2"}, {"normal", "1"}} {
		mode, err := ParseSync(c.name)
		if err != nil || (mode.String() != c.name && c.name != "") {
			t.Fatalf("%q is %v (%v)", c.name, mode, err)
		}
		s, err := Open(t.Context(), path, Options{Sync: mode})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := s.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got); err != nil || got != c.pragma {
			t.Errorf("sync %q: synchronous is %s (%v), want %s", c.name, got, err, c.pragma)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"off", "FULL", "none", "1"} {
		if _, err := ParseSync(name); err == nil {
			t.Errorf("sync %q is accepted", name)
		}
	}
}

// TestDeletionReachesTheDiskInEveryMode has the log be one that cannot be opened: a
// deletion that must sync it fails, and one of which the commit was synced does not.
func TestDeletionReachesTheDiskInEveryMode(t *testing.T) {
	t.Parallel()
	for mode, fails := range map[Sync]bool{SyncFull: false, SyncNormal: true} {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), Options{Sync: mode})
		if err != nil {
			t.Fatal(err)
		}
		addTraces(t, s, "kim")
		addTraces(t, s, "bo")
		for _, broken := range []bool{true, false} {
			path, user := s.path, "bo-canary-user"
			if broken {
				s.path, user = filepath.Join(t.TempDir(), "elsewhere.db"), "kim-canary-user"
			}
			_, err = s.DeleteUser(t.Context(), user, store.DeleteOptions{Force: true, DeferCompaction: true})
			s.path = path
			if failed := err != nil; failed != (broken && fails) {
				t.Errorf("sync %v, log that cannot be opened %v: %v", mode, broken, err)
			}
		}
		if _, err := os.Stat(s.path + "-wal"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
