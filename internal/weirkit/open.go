package weirkit

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// OpenSQLite opens a SQLite store. The Weir that is opened on it closes it.
func OpenSQLite(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// SharedMemory is a memory store that stays usable after Close, so that several Weirs,
// each in the place of a process, can use it one after another.
type SharedMemory struct{ *memory.Store }

// Close does nothing.
func (SharedMemory) Close() error { return nil }

// Open opens a Weir, which is closed when the test ends.
func Open(t *testing.T, o weir.Options) *weir.Weir {
	t.Helper()
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Parse parses a flow that must be valid.
func Parse(t *testing.T, w *weir.Weir, text string) *weir.Flow {
	t.Helper()
	f, err := w.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}
