package cli

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAForeignDatabaseIsNotCalledDamaged runs commands that open the database on one of another program, and on a file
// that is none: each says what the file is, and changes nothing.
func TestAForeignDatabaseIsNotCalledDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign, text := filepath.Join(dir, "notes.db"), filepath.Join(dir, "notes.txt")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE note (body TEXT); INSERT INTO note VALUES ('mine')")
	if err := errors.Join(err, db.Close(), os.WriteFile(text, []byte("notes"), 0o600)); err != nil {
		t.Fatal(err)
	}
	flow := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(flow, []byte("weir: 1\nname: f\nnodes: {a: {type: transform, with: {expr: '1'}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{foreign: "a SQLite database of another program", text: "not a SQLite database"} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{
			"run " + flow, "runs", "show r1", "sessions", "verify --all", "doctor --offline", "store backup " + filepath.Join(dir, "b.db"),
			"store restore " + path + " --db " + filepath.Join(dir, "new.db"), "export r1 -o -", "resume r1", "cancel r1",
		} {
			code, out, errs := inProcess(t, path, args)
			said := out + errs
			if code == 0 || !strings.Contains(said, "it is not a Weir database: the file is "+kind) || strings.Contains(said, "damaged") {
				t.Errorf("%s of %s: exit %d\n%s", args, filepath.Base(path), code, said)
			}
			if !strings.Contains(said, "name a Weir database") {
				t.Errorf("%s: no hint\n%s", args, said)
			}
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", path)
		}
	}
}
