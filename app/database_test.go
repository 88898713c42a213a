package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/app"
)

// TestErrorOfADatabaseNamesItOnce opens what is no database, to write and to read.
func TestErrorOfADatabaseNamesItOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"another file":     write("text.db", "This is not a database, but a text of more than a hundred bytes, so that a header could be read from it. "+strings.Repeat("More. ", 20)),
		"a short file":     write("short.db", "no"),
		"a folder":         folder,
		"a missing folder": filepath.Join(folder, "none", "weir.db"),
		"below a file":     filepath.Join(write("plain", "x"), "weir.db"),
	} {
		for _, readOnly := range []bool{false, true} {
			if name == "a missing folder" && readOnly {
				path = filepath.Join(folder, "nor this", "weir.db")
			}
			d, err := app.OpenDatabase(t.Context(), path, app.DatabaseOptions{ReadOnly: readOnly})
			switch {
			case err == nil && name == "a missing folder": // it is made
				_ = d.Close()
			case err == nil:
				t.Errorf("%s (read-only: %v) is opened", name, readOnly)
				_ = d.Close()
			case strings.Count(err.Error(), path) != 1 || strings.Count(err.Error(), "open ") > 1:
				t.Errorf("%s (read-only: %v): %v", name, readOnly, err)
			}
		}
	}
}
