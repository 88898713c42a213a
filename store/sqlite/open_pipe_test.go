//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weir-run/weir/store"
)

// TestPathsThatAreNoFilesAreRefused opens what is at a path and is not a regular file. Opening a pipe would wait for its
// writer, without an end.
func TestPathsThatAreNoFilesAreRefused(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, os.DevNull, "/dev/zero", t.TempDir()} {
		for name, open := range map[string]func() (*Store, error){
			"open":           func() (*Store, error) { return Open(t.Context(), path, Options{}) },
			"open read-only": func() (*Store, error) { return OpenReadOnly(t.Context(), path, Options{}) },
		} {
			if s, err := open(); !errors.Is(err, store.ErrNotWeir) {
				t.Errorf("%s %s: %v, expected %v", name, path, err, store.ErrNotWeir)
				if err == nil {
					_ = s.Close()
				}
			}
		}
	}
}
