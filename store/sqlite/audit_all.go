package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-run/weir/store"
)

// AuditAll finds problems that belong to no single run: rows without references to them,
// missing run numbers without a tombstone, and values that do not match their digest.
func (s *Store) AuditAll(ctx context.Context) ([]store.Finding, error) {
	a := databaseAudit{lineage: lineage{ctx, s.reader}, s: s}
	for _, check := range []func() error{
		a.checkSeals, a.findUnusedPrograms, a.checkRunNumbers, a.findOrphanRows, a.checkSessions, a.checkSessionChanges, a.checkValues, a.checkDigests, a.findUnreferencedValues, a.checkMessagePages, a.checkIntegrity,
	} {
		if err := check(); err != nil {
			return nil, s.wrap("audit", err)
		}
	}
	return a.found, nil
}

type databaseAudit struct {
	lineage
	s     *Store
	found []store.Finding
}

func (a *databaseAudit) addFinding(what, format string, args ...any) {
	a.found = append(a.found, store.Finding{What: what, Message: fmt.Sprintf(format, args...)})
}

// checkRunNumbers finds runs that were removed without a trace: each assigned number belongs to
// a run or to a tombstone.
func (a *databaseAudit) checkRunNumbers() error {
	var next int64
	err := a.q.QueryRowContext(a.ctx, "SELECT 1 + coalesce((SELECT num FROM gone WHERE name = 'unmarked'), 0)").Scan(&next)
	if err != nil {
		return err
	}
	missing := func(upto int64) {
		if next < upto-1 {
			a.addFinding(store.FoundMissing, "runs number %d to %d are gone, and were not erased", next, upto-1)
		} else if next < upto {
			a.addFinding(store.FoundMissing, "run number %d is gone, and was not erased", next)
		}
	}
	err = a.query(func(row scanner) error {
		var num int64
		if err := row.Scan(&num); err != nil {
			return err
		}
		if num < next && num > 0 {
			a.addFinding(store.FoundAdded, "run number %d is there and erased as well", num)
		}
		missing(num)
		next = num + 1
		return nil
	}, `SELECT num FROM (SELECT num FROM run_row UNION ALL SELECT num FROM tombstone)
		WHERE num > coalesce((SELECT num FROM gone WHERE name = 'unmarked'), 0) ORDER BY num`)
	if err != nil {
		return err
	}
	var last int64
	err = a.q.QueryRowContext(a.ctx, "SELECT 1 + coalesce((SELECT num FROM gone WHERE name = 'run'), 0)").Scan(&last)
	missing(last)
	return err
}

// findOrphanRows finds rows whose parent row does not exist.
func (a *databaseAudit) findOrphanRows() error {
	for _, x := range []struct{ what, query string }{
		{"commits of a run", "SELECT id >> 32, count(*) FROM run_commit WHERE id >> 32 NOT IN (SELECT num FROM run_row) GROUP BY 1"},
		{"commits below the first of run", `SELECT r.num, count(*) FROM run_row r JOIN run_commit c
			ON c.id >= r.num << 32 AND c.id <= (r.num << 32) + coalesce(r.base_seq, 0) GROUP BY 1`},
		{"contexts of a run", "SELECT run, count(*) FROM context WHERE run IS NOT NULL AND run NOT IN (SELECT num FROM run_row) GROUP BY 1"},
		{"histories of a session", "SELECT id, count(*) FROM context WHERE run IS NULL AND id NOT IN (SELECT context FROM session) GROUP BY 1"},
		{"histories without their name, of a session", "SELECT s.num, 1 FROM session s JOIN context c ON c.id = s.context WHERE c.run IS NOT NULL OR c.name <> 'main'"},
		{"messages of a context", "SELECT id >> 32, count(*) FROM message WHERE id >> 32 NOT IN (SELECT id FROM context) GROUP BY 1"},
		{"pages of a context", "SELECT id >> 32, count(*) FROM message_page WHERE id >> 32 NOT IN (SELECT id FROM context) GROUP BY 1"},
		{"values of a tree of runs", "SELECT root, count(*) FROM value WHERE root NOT IN (SELECT root FROM run_row UNION SELECT -num FROM session) GROUP BY 1"},
		{"parts of a value", "SELECT id >> 20, count(*) FROM value_part WHERE id >> 20 NOT IN (SELECT id FROM value WHERE body IS NULL) GROUP BY 1"},
		{"parts out of order, of a value", "SELECT id >> 20, count(*) FROM value_part GROUP BY 1 HAVING max(id) & 0xfffff <> count(*) - 1"},
		{"copies of what is left of a run", "SELECT min(num), count(*) FROM tombstone GROUP BY origin HAVING count(*) > 1"},
		{"changes of the state of a session", "SELECT id >> 32, count(*) FROM session_change WHERE id >> 32 NOT IN (SELECT num FROM session) GROUP BY 1"},
		{"changes of the state by a run", "SELECT run, count(*) FROM session_change WHERE run IS NOT NULL AND run NOT IN (SELECT num FROM run_row) GROUP BY 1"},
		{"runs of a tree of runs", "SELECT root, count(*) FROM run_row WHERE root NOT IN (SELECT num FROM run_row WHERE root = num UNION SELECT -num FROM session) GROUP BY 1"},
	} {
		err := a.query(func(row scanner) error {
			var owner, n int64
			err := row.Scan(&owner, &n)
			if err == nil {
				a.addFinding(store.FoundAdded, "there are %d %s that is not there (number %d)", n, x.what, owner)
			}
			return err
		}, x.query)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSessions finds sessions whose stored number of rounds is wrong.
func (a *databaseAudit) checkSessions() error {
	return a.query(func(row scanner) error {
		var id string
		var says, has int64
		err := row.Scan(&id, &says, &has)
		if err == nil {
			a.addFinding(store.FoundChanged, "session %s says that it has had %d rounds, and the last is number %d", id, says, has)
		}
		return err
	}, `SELECT id, rounds, n FROM (SELECT s.id, s.rounds, coalesce((SELECT max(round) FROM run_row r WHERE r.session = s.num), 0) AS n FROM session s)
		WHERE rounds <> n`)
}

// checkValues finds values that do not match their digest.
func (a *databaseAudit) checkValues() error {
	return a.query(func(row scanner) error {
		var id int64
		var want, body, salt []byte
		if err := row.Scan(&id, &want, &body, &salt); err != nil {
			return err
		}
		r := runState{salt: salt}
		if d := r.digest(body); !bytes.Equal(d[:], want) {
			a.addFinding(store.FoundChanged, "value %d (%d bytes, %.40s...) is not what its digest says", id, len(body), body)
		}
		return nil
	}, `SELECT v.id, v.digest, j.body, coalesce(r.salt, s.salt) FROM value v JOIN value_json j ON j.id = v.id
		LEFT JOIN run_row r ON r.num = v.root LEFT JOIN session s ON s.num = -v.root WHERE v.digest IS NOT NULL`)
}

// findUnreferencedValues finds values without references, or with references from another tree
// of runs only: deleting their own tree would not delete them.
func (a *databaseAudit) findUnreferencedValues() error {
	known := map[int64]int64{} // the root of what refers to it
	for _, q := range []string{
		"SELECT 0, c.events, r.root FROM run_commit c JOIN run_row r ON r.num = c.id >> 32 WHERE c.base IS NULL AND instr(c.events, '$v')",
		`SELECT coalesce(m.value, 0), coalesce(m.rest, ''), coalesce(r.root, -s.num) FROM message m JOIN context c ON c.id = m.id >> 32
			LEFT JOIN run_row r ON r.num = c.run LEFT JOIN session s ON s.context = c.id WHERE m.value IS NOT NULL OR m.rest IS NOT NULL`,
		"SELECT 0, j.body, v.root FROM value v JOIN value_json j ON j.id = v.id WHERE instr(j.body, '$v')",
	} {
		err := a.query(func(row scanner) error {
			var direct int64
			var root sql.NullInt64
			var text []byte
			err := row.Scan(&direct, &text, &root)
			known[direct] = root.Int64
			collectReferences(known, text, root.Int64)
			return err
		}, q)
		if err != nil {
			return err
		}
	}
	whole, err := a.referencesInDiffs(known)
	if err != nil || !whole {
		return err
	}
	return a.query(func(row scanner) error {
		var id, root int64
		err := row.Scan(&id, &root)
		if by, ok := known[id]; err == nil && !ok {
			a.addFinding(store.FoundAdded, "nothing refers to value %d", id)
		} else if err == nil && by != root {
			a.addFinding(store.FoundChanged, "value %d is recorded under another tree of runs (root %d) than what refers to it (root %d)", id, root, by)
		}
		return err
	}, "SELECT id, root FROM value")
}

// collectReferences collects the values that a text of a tree of runs refers to.
func collectReferences(known map[int64]int64, text []byte, root int64) {
	u := unpacker{}
	for _, id := range u.addMissingValues(nil, text) {
		known[id] = root
	}
}

// referencesInDiffs collects the references of commits that are stored as deltas. whole is
// false if some cannot be read; the chains of their runs report that.
func (a *databaseAudit) referencesInDiffs(known map[int64]int64) (whole bool, err error) {
	roots := map[int64]int64{} // by run
	err = a.query(func(row scanner) error {
		var num, root int64
		err := row.Scan(&num, &root)
		roots[num] = root
		return err
	}, "SELECT DISTINCT c.id >> 32, r.root FROM run_commit c JOIN run_row r ON r.num = c.id >> 32 WHERE c.base IS NOT NULL")
	for num, root := range roots {
		r := commitReader{s: a.s, num: num, upto: maxNumber, bases: map[int64]*tokenizedText{}}
		var first int64
		if err == nil {
			err = a.q.QueryRowContext(a.ctx, "SELECT min(id) & 0xffffffff FROM run_commit WHERE id > ? AND id < ?", num*rowsPerParent, (num+1)*rowsPerParent).Scan(&first)
		}
		for after := first - 1; err == nil; {
			var rows []commitRow
			if rows, err = r.rows(a.ctx, after); len(rows) == 0 {
				break
			}
			for i := range rows {
				collectReferences(known, rows[i].text, root)
			}
			after = rows[len(rows)-1].seq
		}
	}
	if errors.Is(err, store.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// checkMessagePages finds pages of message ids that lack messages.
func (a *databaseAudit) checkMessagePages() error {
	type page struct {
		id     int64
		hashes []byte
	}
	var pages []page
	err := a.query(func(row scanner) error {
		var p page
		err := row.Scan(&p.id, &p.hashes)
		pages = append(pages, p)
		return err
	}, "SELECT id, hashes FROM message_page")
	if err != nil {
		return err
	}
	for _, p := range pages {
		context, number := p.id/rowsPerParent, p.id%rowsPerParent
		hashes, err := a.pageHashes(context, number)
		if err != nil {
			return err
		}
		if !bytes.Equal(hashes, p.hashes) {
			a.addFinding(store.FoundChanged, "page %d of context %d does not name the messages in it", number, context)
		}
	}
	return nil
}
