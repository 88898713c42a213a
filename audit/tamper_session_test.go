package audit_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// No run refers to the row of a session that has had no round.
func TestVerifyCoversTheRowOfASessionWithoutRounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.CreateSession(t.Context(), store.NewSession{ID: "s", User: "ada", Flow: "f", Now: time.UnixMilli(1_800_000_000_000)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tables := sqlite.Tables()
	at := slices.IndexFunc(tables, func(x sqlite.Table) bool { return x.Name == "session" })
	for _, c := range tables[at].Columns {
		// Nothing was digested with the salt yet, and nothing refers to the number.
		if c.Verification != sqlite.Chained || c.Name == "salt" || c.Name == "num" {
			continue
		}
		change := `"` + c.Name + `" || 'x'`
		if c.Types[0] == "integer" {
			change = `coalesce("` + c.Name + `", 0) + 1`
		}
		if r := verifyChanged(t, filepath.Join(dir, c.Name+".db"), data, `UPDATE session SET "`+c.Name+`" = `+change); r.OK {
			t.Errorf("a change of %s is not found", c.Name)
		}
	}
	if r := verifyChanged(t, filepath.Join(dir, "same.db"), data, `UPDATE session SET rounds = rounds`); !r.OK {
		t.Errorf("without a change: %+v", r.Findings)
	}
}

// verifyChanged verifies a database after a statement.
func verifyChanged(t *testing.T, path string, data []byte, statement string) *audit.Report {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(statement, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.OpenReadOnly(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it only read
	r, err := audit.Verify(t.Context(), s, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
