package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/weir-run/weir/store"
)

// maxMistyped limits how many rows of a table are reported for columns of a type that Weir
// never writes.
const maxMistyped = 20

// mistypedRows finds rows of a table with a column whose storage class is none that Weir
// writes there: SQLite keeps any value in any column, and compares 1 and '1' as
// different. where narrows the rows.
func (l lineage) mistypedRows(t *Table, where string, args ...any) ([]store.Finding, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT quote(%s), bad, class FROM (SELECT *, CASE", t.Key)
	for _, c := range t.Columns {
		fmt.Fprintf(&b, " WHEN %s THEN '%s'", c.mistypedCondition(), c.Name)
	}
	b.WriteString(" END AS bad, CASE")
	for _, c := range t.Columns {
		fmt.Fprintf(&b, " WHEN %s THEN typeof(%s)", c.mistypedCondition(), c.Name)
	}
	fmt.Fprintf(&b, " END AS class FROM %s WHERE %s) WHERE bad IS NOT NULL LIMIT %d", t.Name, where, maxMistyped)
	var out []store.Finding
	err := l.query(func(row scanner) error {
		var key, column, class string
		err := row.Scan(&key, &column, &class)
		out = append(out, store.Finding{
			What:    store.FoundChanged,
			Message: fmt.Sprintf("column %s of %s %.80s is %s of a kind that Weir does not write there", column, t.Name, key, class),
		})
		return err
	}, b.String(), args...)
	return out, err
}

// mistypedCondition returns the condition under which a column holds what Weir does not write there.
func (c *Column) mistypedCondition() string {
	out := fmt.Sprintf("typeof(%s) NOT IN ('%s')", c.Name, strings.Join(c.Types, "','"))
	if c.NeverEmpty {
		out += fmt.Sprintf(" OR typeof(%[1]s) = 'integer' AND %[1]s = 0 OR typeof(%[1]s) = 'text' AND %[1]s = ''", c.Name)
	}
	if c.Bytes > 0 {
		out += fmt.Sprintf(" OR typeof(%[1]s) = 'blob' AND length(%[1]s) <> %[2]d", c.Name, c.Bytes)
	}
	return out
}

// auditTypes finds columns of wrong types in the tables of record; in large tables only if all
// are requested.
func (s *Store) auditTypes(ctx context.Context, all bool) (out []store.Finding, err error) {
	large := map[string]bool{"run_commit": true, "context": true, "message": true, "message_page": true, "value": true, "value_part": true}
	for _, t := range recordTables() {
		if large[t.Name] && !all {
			continue
		}
		found, err := lineage{ctx, s.reader}.mistypedRows(&t, "TRUE")
		if err != nil {
			return nil, s.wrap("audit types", err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// checkTypes finds what is of another type in the rows of the run and of its session.
func (a *runAudit) checkTypes() error {
	num := a.Chain.Number
	where := map[string]string{
		"run_commit": "id > ?1 << 32 AND id < (?1 + 1) << 32",
		"context":    "run = ?1 OR id = (SELECT s.context FROM session s JOIN run_row r ON r.session = s.num WHERE r.num = ?1)",
	}
	for _, t := range recordTables() {
		if where[t.Name] == "" {
			continue
		}
		found, err := a.mistypedRows(&t, where[t.Name], num)
		if err != nil {
			return err
		}
		a.addRunFindings(found)
	}
	t := tableOf("message")
	return a.query(func(row scanner) error {
		var from, to int64
		if err := row.Scan(&from, &to); err != nil {
			return err
		}
		found, err := a.mistypedRows(t, "id >= ?1 AND id < ?2", from, to)
		a.addRunFindings(found)
		return err
	}, "SELECT id << 32, (id + 1) << 32 FROM context WHERE run = ?1", num)
}

func tableOf(name string) *Table {
	for _, t := range recordTables() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}

// addRunFindings takes over findings as those of the run.
func (a *runAudit) addRunFindings(found []store.Finding) {
	for _, f := range found {
		f.Run = a.Chain.Run
		a.Found = append(a.Found, f)
	}
}

// checkSeals checks the seals of the run and of its session.
func (a *runAudit) checkSeals() error {
	for table, where := range map[string]string{
		"run_row":        " WHERE r.num = ?1",
		"session":        " WHERE s.num = (SELECT session FROM run_row WHERE num = ?1)",
		"session_change": sessionChangesOfRun,
	} {
		err := a.sealedRows(table, where, func(r *sealedRow) error {
			if r.isBroken() {
				a.AddFinding(store.FoundChanged, "%s", r.problem())
			}
			return nil
		}, a.Chain.Number)
		if err != nil {
			return err
		}
	}
	return nil
}

// problem returns what is wrong with a row whose seal is broken.
func (r *sealedRow) problem() string {
	switch f := r.facts.(type) {
	case *runFacts:
		return fmt.Sprintf("the row of run %s is not what was written: its identity, times, place in its session or base were changed", f.ID)
	case *sessionFacts:
		return fmt.Sprintf("the row of session %s is not what was written: its identity, times, parent or history were changed", f.ID)
	case *changeFacts:
		return fmt.Sprintf("change %d of the state of session number %d, of key %q, is not what was written", f.ID%rowsPerParent, f.ID/rowsPerParent, f.Key)
	case *userFacts:
		return fmt.Sprintf("the state key %q of user %s in flow %s is not what was written", f.Key, f.User, f.Flow)
	case *tombstoneFacts:
		return fmt.Sprintf("the tombstone of run number %d is not what was written", f.Num)
	}
	return "a number of what is gone is not what was written"
}

// checkSeals checks all seals, and that what is gone is numbered as it was.
func (a *databaseAudit) checkSeals() error {
	for table := range sealedTables() {
		err := a.sealedRows(table, "", func(r *sealedRow) error {
			if r.isBroken() {
				a.addFinding(store.FoundChanged, "%s", r.problem())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return a.query(func(row scanner) error {
		var name string
		err := row.Scan(&name)
		a.addFinding(store.FoundChanged, "the number %q of what is gone is not what was written", name)
		return err
	}, `SELECT name FROM gone WHERE name NOT IN ('run', 'session', 'unmarked', 'traces') OR name = 'traces' AND (num <> 1 OR seal IS NOT NULL)
		OR name = 'run' AND num < (SELECT max(num) FROM tombstone)
		UNION ALL SELECT 'unmarked' WHERE NOT EXISTS (SELECT 1 FROM gone WHERE name = 'unmarked')
		UNION ALL SELECT 'run' WHERE EXISTS (SELECT 1 FROM tombstone) AND NOT EXISTS (SELECT 1 FROM gone WHERE name = 'run')`)
}

// findUnusedPrograms finds programs that no run ran.
func (a *databaseAudit) findUnusedPrograms() error {
	return a.query(func(row scanner) error {
		var num int64
		err := row.Scan(&num)
		a.addFinding(store.FoundAdded, "program %d was run by no run", num)
		return err
	}, "SELECT num FROM program WHERE num NOT IN (SELECT program FROM run_row WHERE program IS NOT NULL)")
}

// checkDigests finds values that have a digest and should have none, or the other way.
func (a *databaseAudit) checkDigests() error {
	return a.query(func(row scanner) error {
		var id int64
		err := row.Scan(&id)
		a.addFinding(store.FoundChanged, "value %d has not the digest that it was written with", id)
		return err
	}, fmt.Sprintf(`SELECT v.id FROM value v JOIN value_json j ON j.id = v.id
		WHERE (v.digest IS NULL) <> (length(CAST(j.body AS BLOB)) < %d)`, largeValue))
}

// checkIntegrity has SQLite compare its indexes with its tables. A connection remembers the
// structure of a text index, and the check does not notice that another connection has changed
// it since: opening the index in the same transaction does.
func (a *databaseAudit) checkIntegrity() error {
	conn, err := a.s.reader.Conn(a.ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it only read
	if _, err := conn.ExecContext(a.ctx, "BEGIN"); err != nil {
		return err
	}
	defer conn.ExecContext(context.WithoutCancel(a.ctx), "ROLLBACK") //nolint:errcheck // it only read
	indexes, err := texts(a.ctx, conn, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'")
	for i := 0; err == nil && i < len(indexes); i++ {
		_, err = texts(a.ctx, conn, "SELECT rowid FROM "+quoteName(indexes[i])+" LIMIT 1")
	}
	if err != nil {
		a.addFinding(store.FoundUnreadable, "a text index cannot be read: %v", err)
	}
	verdicts, err := texts(a.ctx, conn, "PRAGMA integrity_check(20)")
	for _, v := range verdicts {
		if v != "ok" {
			a.addFinding(store.FoundUnreadable, "SQLite's integrity check: %s", v)
		}
	}
	return err
}

// quoteName quotes the name of a table.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// texts reads the first column of the rows of a query.
func texts(ctx context.Context, conn *sql.Conn, query string) (out []string, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// RowHash identifies what the row of a run, and that of its session, say besides the
// journal. It is the zero Hash for a run that was erased.
func (s *Store) RowHash(ctx context.Context, c store.Chain) (store.Hash, error) {
	if c.Run == "" {
		return store.Hash{}, nil
	}
	secret, err := s.secret(ctx, c.Number)
	if err != nil {
		return store.Hash{}, s.wrap("row of run "+c.Run, err)
	}
	var facts []any
	l := lineage{ctx, s.reader}
	for _, x := range [][2]string{{"run_row", " WHERE r.num = ?1"}, {"session", " WHERE s.num = (SELECT session FROM run_row WHERE num = ?1)"}} {
		err := l.sealedRows(x[0], x[1], func(r *sealedRow) error {
			facts = append(facts, r.facts)
			return nil
		}, c.Number)
		if err != nil {
			return store.Hash{}, s.wrap("row of run "+c.Run, err)
		}
	}
	return store.RowHash(secret, c.Run, facts)
}
