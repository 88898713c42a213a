package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/store/storetest"
)

// reopenable is a Store with the path it is at.
type reopenable struct {
	*Store
}

func (r reopenable) Reopen(tb testing.TB) storetest.Store {
	tb.Helper()
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	return reopenable{openAt(tb, r.path, Options{})}
}

// OpenSecond opens the file once more, as another process does.
func (r reopenable) OpenSecond(tb testing.TB) storetest.Store {
	tb.Helper()
	return reopenable{openAt(tb, r.path, Options{})}
}

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
	storetest.Run(t, func(t *testing.T) storetest.Store {
		t.Helper()
		return reopenable{openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})}
	})
}
