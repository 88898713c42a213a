//go:build unix

package postgres

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

var update = flag.Bool("update", false, "rewrite schema.txt")

func TestTheExpectedSchemaIsThatOfTheMigrations(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Schema(t), Options{MaxConnections: 1})
	lines, err := s.schemaLines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := strings.Join(lines, "\n") + "\n"; got != expectedSchema {
		t.Error("schema.txt differs from what the migrations make; run go test ./store/postgres -run ExpectedSchema -update")
	}
	for _, c := range []struct{ change, back string }{
		{"CREATE RULE r AS ON INSERT TO s1.run_commit DO INSTEAD NOTHING", "DROP RULE r ON s1.run_commit"},
		{"ALTER TABLE s1.run ENABLE ROW LEVEL SECURITY", "ALTER TABLE s1.run DISABLE ROW LEVEL SECURITY"},
		{"ALTER TABLE s1.run ADD COLUMN x text", "ALTER TABLE s1.run DROP COLUMN x"},
		{"ALTER TABLE s1.message DROP CONSTRAINT message_pkey", "ALTER TABLE s1.message ADD PRIMARY KEY (context, position)"},
		{"DROP INDEX s1.run_due", "CREATE INDEX run_due ON s1.run (due) WHERE due > 0"},
		{
			"CREATE FUNCTION s1.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER t BEFORE INSERT ON s1.message FOR EACH ROW EXECUTE FUNCTION s1.f()",
			"DROP TRIGGER t ON s1.message",
		},
		{
			"CREATE OR REPLACE FUNCTION s1.weir_now() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
			"CREATE OR REPLACE FUNCTION s1.weir_now() RETURNS bigint LANGUAGE sql AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'",
		},
		{
			"ALTER VIEW s1.remembered RENAME TO kept; CREATE VIEW s1.remembered AS SELECT * FROM s1.kept WHERE version > 1",
			"DROP VIEW s1.remembered; ALTER VIEW s1.kept RENAME TO remembered",
		},
		{"CREATE FUNCTION s1.weir_more() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION s1.weir_more"},
	} {
		server.SQL(t, c.change)
		found, err := s.AuditSchema(t.Context(), true)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %v %v", c.change, found, err)
		}
		server.SQL(t, c.back)
		if found, err = s.AuditSchema(t.Context(), true); err != nil || len(found) != 0 {
			t.Errorf("%s: %v %v", c.back, found, err)
		}
	}
}
