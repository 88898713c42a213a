// Package shareddata opens the documents of others that tests read: real conversations, graphs of real workflows and
// reference token counts. They are in the folder ../shared/data next to the checkout, not in the repository. It must
// not know the format of any file.
package shareddata

import (
	"os"
	"path/filepath"
	"testing"
)

// Airline is the file of the recorded conversations of an airline's service desk, one JSON object a line.
const Airline = "airline/conversations.jsonl"

// Open opens a file of the shared data for a test, and closes it with the test. If the file is missing, the test is
// skipped; where the environment variable CI is set it fails, so that no check is skipped there unnoticed.
func Open(tb testing.TB, name string) *os.File {
	tb.Helper()
	f, err := os.Open(Path(tb, name))
	if err != nil {
		Missing(tb, err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// Path returns the path of a file or folder of the shared data, which may be missing.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	root, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
		if root == filepath.Dir(root) {
			tb.Fatal("the test runs outside of the repository")
		}
		root = filepath.Dir(root)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(filepath.Dir(root), "shared", "data", filepath.FromSlash(name))
}

// Missing ends a test whose data is missing: as failed if CI is set, otherwise as skipped.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("the shared data is missing, and CI is set: %v", err)
	}
	tb.Skipf("the shared data is missing: %v", err)
}
