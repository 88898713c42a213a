package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/storetest"
)

func openAt(tb testing.TB, path string, opts Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestSQLiteStore(t *testing.T) {
	storetest.Run(t, storetest.Subject{
		Open: func(tb testing.TB, clock func() time.Time) store.Store {
			tb.Helper()
			return openAt(tb, filepath.Join(tb.TempDir(), "weir.db"), Options{Clock: clock})
		},
		Reopen: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			if err := s.Close(); err != nil {
				tb.Fatal(err)
			}
			return openAt(tb, s.(*Store).path, Options{Clock: clock})
		},
		OpenSecond: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			return openAt(tb, s.(*Store).path, Options{Clock: clock})
		},
	})
}
