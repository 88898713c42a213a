package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// AuditAll finds rows that belong to no run or session, and sessions that differ from their rounds; see
// store.AuditStore.
func (s *Store) AuditAll(ctx context.Context) (found []store.Finding, err error) {
	for _, x := range auditQueries() {
		err := s.query(ctx, func(row pgx.Row) error {
			var owner string
			var n int64
			err := row.Scan(into(&owner), &n)
			found = append(found, store.Finding{What: x.kind, Message: fmt.Sprintf(x.message, n, owner)})
			return err
		}, x.query)
		if err != nil {
			return nil, s.wrap("audit", err)
		}
	}
	return found, nil
}

// auditQuery finds something that must not be: it returns what it is of, and a number.
type auditQuery struct{ kind, message, query string }

func auditQueries() []auditQuery {
	orphans := func(what, query string) auditQuery {
		return auditQuery{store.FoundAdded, "there are %d " + what + " that is not there (number %s)", query}
	}
	return []auditQuery{
		orphans("commits of a run", "SELECT run::text, count(*) FROM run_commit WHERE run NOT IN (SELECT num FROM run) GROUP BY 1"),
		orphans("commits below the first of a run", "SELECT r.num::text, count(*) FROM run r JOIN run_commit c ON c.run = r.num AND c.seq <= r.base_seq GROUP BY 1"),
		orphans("contexts of a run", "SELECT run::text, count(*) FROM context WHERE run IS NOT NULL AND run NOT IN (SELECT num FROM run) GROUP BY 1"),
		orphans("histories of a session", "SELECT id::text, count(*) FROM context WHERE run IS NULL AND id NOT IN (SELECT context FROM session) GROUP BY 1"),
		orphans("messages of a context", "SELECT context::text, count(*) FROM message m WHERE NOT EXISTS (SELECT 1 FROM context c WHERE c.id = m.context) GROUP BY 1"),
		orphans("messages of a commit", `SELECT run || '.' || seq, count(*) FROM message m
			WHERE NOT EXISTS (SELECT 1 FROM run_commit c WHERE c.run = m.run AND c.seq = m.seq) GROUP BY 1`),
		orphans("changes of the state of a session", "SELECT session::text, count(*) FROM session_change WHERE session NOT IN (SELECT num FROM session) GROUP BY 1"),
		orphans("changes of the state by a run", "SELECT run::text, count(*) FROM session_change WHERE run IS NOT NULL AND run NOT IN (SELECT num FROM run) GROUP BY 1"),
		orphans("runs of a tree of runs", `SELECT root::text, count(*) FROM run WHERE root NOT IN (SELECT num FROM run WHERE root = num
			UNION SELECT -num FROM session) GROUP BY 1`),
		orphans("runs of a session", "SELECT session::text, count(*) FROM run WHERE session IS NOT NULL AND session NOT IN (SELECT num FROM session) GROUP BY 1"),
		{store.FoundAdded, "%d runs are there and erased as well (number %s)", "SELECT num::text, 1::bigint FROM run WHERE num IN (SELECT num FROM tombstone)"},
		{store.FoundAdded, "%d tombstones are of one run (number %s)", "SELECT min(num)::text, count(*) FROM tombstone GROUP BY origin HAVING count(*) > 1"},
		{store.FoundChanged, "the last round has the number %d, and session %s says another", `SELECT id, n FROM (
			SELECT s.id, s.rounds, coalesce((SELECT max(round) FROM run r WHERE r.session = s.num), 0) AS n FROM session s) x WHERE rounds <> n`},
		{store.FoundChanged, "the history has %d messages, and session %s says another number", `SELECT id, n FROM (
			SELECT s.id, s.length, coalesce((SELECT max(position) + 1 FROM message m WHERE m.context = s.context), s.start) AS n FROM session s) x WHERE length <> n`},
		{store.FoundChanged, "there are %d changes of the state, and session %s says another number, or their numbers have gaps", `SELECT id, n FROM (
			SELECT s.id, s.changes, count(c.num) AS n, coalesce(max(c.num), 0) AS last FROM session s LEFT JOIN session_change c ON c.session = s.num GROUP BY s.num) x
			WHERE changes <> n OR changes <> last`},
		{store.FoundChanged, "%d histories are not that of their session %s", `SELECT s.id, 1::bigint FROM session s LEFT JOIN context c ON c.id = s.context
			LEFT JOIN session p ON p.num = s.parent
			WHERE c.id IS NULL OR c.run IS NOT NULL OR c.name <> 'main' OR c.start <> s.start OR c.source IS DISTINCT FROM p.context
				OR c.kind <> CASE WHEN s.parent IS NULL THEN '' ELSE 'run' END`},
		{store.FoundChanged, "%d rounds of session %s begin elsewhere than the round before ended", `SELECT s.id, count(*) FROM session s JOIN run r ON r.session = s.num
			LEFT JOIN context c ON c.run = r.num AND c.kind = 'session' WHERE r.first > s.length OR r.first < s.start OR c.start <> r.first GROUP BY 1`},
	}
}

//go:embed schema.txt
var expectedSchema string

// schemaQuery lists what decides how the tables and views behave: columns, keys, indexes, triggers, rules, row security,
// the queries of views, and the functions of Weir. Each line begins with the table, or with "()" for a function. Versions
// of PostgreSQL print the query of a view of one table differently: those of Weir have at least two.
const schemaQuery = `SELECT c.relname || ' column ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	UNION ALL SELECT c.relname || ' kind ' || c.relkind::text || CASE WHEN c.relrowsecurity THEN ' with row security' ELSE '' END
		FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	UNION ALL SELECT c.relname || ' key ' || pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND k.contype IN ('p', 'u', 'f')
	UNION ALL SELECT c.relname || ' index ' || i.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND x.indisvalid
	UNION ALL SELECT c.relname || ' trigger ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
	UNION ALL SELECT c.relname || ' rule ' || w.rulename FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
	UNION ALL SELECT c.relname || ' query ' || pg_get_viewdef(c.oid)
		FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'v'
	UNION ALL SELECT '() ' || p.proname || ' ' || btrim(p.prosrc) FROM pg_proc p
		WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'weir\_%'`

func (s *Store) schemaLines(ctx context.Context) (out []string, err error) {
	err = s.query(ctx, func(row pgx.Row) error {
		var line string
		err := row.Scan(&line)
		out = append(out, strings.Join(strings.Fields(line), " "))
		return err
	}, schemaQuery)
	slices.Sort(out)
	return out, err
}

// AuditSchema compares the schema of the database with the expected one; see store.RowStore. Tables of other programs
// are of no interest.
func (s *Store) AuditSchema(ctx context.Context, _ bool) (found []store.Finding, err error) {
	is, err := s.schemaLines(ctx)
	if err != nil {
		return nil, s.wrap("audit schema", err)
	}
	expected := strings.Split(strings.TrimSpace(expectedSchema), "\n")
	tables := map[string]bool{}
	for _, line := range expected {
		table, _, _ := strings.Cut(line, " ")
		tables[table] = true
		if !slices.Contains(is, line) {
			found = append(found, store.Finding{What: store.FoundMissing, Message: "the schema lacks: " + line})
		}
	}
	for _, line := range is {
		if table, _, _ := strings.Cut(line, " "); tables[table] && !slices.Contains(expected, line) {
			found = append(found, store.Finding{What: store.FoundAdded, Message: "the schema has, and must not have: " + line})
		}
	}
	return found, nil
}
