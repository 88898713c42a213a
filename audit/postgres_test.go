//go:build unix

package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/postgres"
)

// notVerified are the columns of the tables of record that change as runs proceed, or that nothing else repeats:
// verifying does not find a change of them. docs/postgres.md lists them.
func notVerified() map[string][]string {
	return map[string][]string{
		"run":            {"activity", "created", "crashes", "due", "fence", "num", "owner", "until", "updated", "usage", "waiting"},
		"session":        {"active", "carryover", "created", "expires", "fence", "flow", "holder", "id", "num", "parent_round", "thread", "updated", "usage", "user_id"},
		"session_change": {"sender", "at", "reducer", "value", "round", "key"}, // of those that were set by hand
		"message":        {"tokens"},
		"tombstone":      {"num"},
		"context":        {"id"},
	}
}

// TestVerifyFindsChangedColumnsOnPostgreSQL changes each column of each table of record in turn.
func TestVerifyFindsChangedColumnsOnPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	s, err := postgres.Open(t.Context(), server.Schema(t), postgres.Options{MaxConnections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := audit.Copy(t.Context(), weirkit.OpenSQLite(t, archiveDatabase(t)), s, nil); err != nil {
		t.Fatal(err)
	}
	verify := func() (*audit.Report, error) { return audit.Verify(t.Context(), s, audit.Options{}) }
	if r, err := verify(); err != nil || !r.OK {
		t.Fatalf("before any change: %+v %v", r, err)
	}
	// No key refers to another while rows are changed.
	server.SQL(t, `DO $$ DECLARE k record; BEGIN FOR k IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
		WHERE contype = 'f' AND connamespace = 's1'::regnamespace LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.t, k.conname); END LOOP; END $$`)
	base, err := verify() // says that the keys are missing
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"run", "run_commit", "context", "message", "session", "session_change", "flow"} {
		for line := range strings.SplitSeq(server.SQL(t, fmt.Sprintf("SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 's1.%s'::regclass AND attnum > 0 AND NOT attisdropped", table)), "\n") {
			column, kind, _ := strings.Cut(line, " ")
			to := map[string]string{"text": "%s || 'x'", "bytea": "%s || '\\x20'::bytea"}[kind]
			if to == "" {
				to = "%s + 1000"
			}
			to = fmt.Sprintf("coalesce("+to+", %s)", column, map[string]string{"text": "'x'", "bytea": "'x'"}[kind]+map[bool]string{true: "1"}[kind != "text" && kind != "bytea"])
			where := fmt.Sprintf("ctid = (SELECT ctid FROM s1.%s ORDER BY %s DESC NULLS LAST LIMIT 1)", table, column)
			server.SQL(t, fmt.Sprintf("CREATE TABLE s1.saved AS SELECT * FROM s1.%s; UPDATE s1.%s SET %s = %s WHERE %s", table, table, column, to, where))
			r, err := verify()
			found := err != nil || len(r.Findings) > len(base.Findings)
			if known := slices.Contains(notVerified()[table], column); !found && !known {
				t.Errorf("a change of %s.%s was not found", table, column)
			}
			server.SQL(t, fmt.Sprintf("DELETE FROM s1.%s; INSERT INTO s1.%s SELECT * FROM s1.saved; DROP TABLE s1.saved", table, table))
		}
	}
	if r, err := verify(); err != nil || len(r.Findings) != len(base.Findings) {
		t.Errorf("after all changes were taken back: %+v %v", r, err)
	}
}

func openPostgres(t *testing.T) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), pgtest.Start(t).Schema(t), postgres.Options{MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestACopyToPostgreSQLAndBackHasTheRowsOfEachTable(t *testing.T) {
	t.Parallel()
	testCopiedTables(t, openPostgres(t))
}

func TestASessionThatWasCopiedToPostgreSQLBeforeItsFirstRoundGetsItsRounds(t *testing.T) {
	t.Parallel()
	testEarlySession(t, openPostgres(t))
}

func TestACopyOnPostgreSQLHasRoundsOfForksOfSessionsWithoutRounds(t *testing.T) {
	t.Parallel()
	testForkedSessions(t, openPostgres(t))
}

func TestACopyOnPostgreSQLHasValuesThatWereSetSince(t *testing.T) {
	t.Parallel()
	testValuesSetSince(t, openPostgres(t))
}
