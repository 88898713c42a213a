package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/dependents"
)

// What is deleted together is a tree of runs, or a session with the trees of its
// rounds: what has one root. Trees that share a past with it depend on it.

// DeleteSession deletes a session, its rounds and everything that depends on them. No byte of
// them remains in the file or its log. The error is store.ErrNotFound if there is no such
// session, and store.ErrOwned while a live process executes one of its runs.
func (s *Store) DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	return s.deleteTrees(ctx, "delete session "+id, e, "", func(ctx context.Context) ([]int64, error) {
		var num int64
		err := s.conn.QueryRowContext(ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&num)
		return []int64{-num}, err
	})
}

// DeleteRun deletes a run with its children and everything that depends on them. No byte of
// them remains in the file or its log. The error is store.ErrPart for a round or a child run,
// and store.ErrNotFound or store.ErrOwned as for DeleteSession.
func (s *Store) DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	return s.deleteTrees(ctx, "delete run "+id, e, "", func(ctx context.Context) ([]int64, error) {
		var num, root int64
		var whole string
		err := s.conn.QueryRowContext(ctx, `SELECT num, root, coalesce(
			(SELECT 'session ' || s.id FROM session s WHERE s.num = -r.root), (SELECT 'run ' || o.id FROM run o WHERE o.num = r.root), '')
			FROM run r WHERE id = ?`, id).Scan(&num, &root, &whole)
		if err == nil && num != root {
			err = fmt.Errorf("%w: of %s", store.ErrNotRoot, whole)
		}
		return []int64{root}, err
	})
}

// DeleteUser deletes the sessions, runs, trajectories and memory of a user and everything that
// depends on them. No byte of them remains in the file or its log. A user without data is no
// error. The error is store.ErrOwned as for DeleteSession.
func (s *Store) DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error) {
	if user == "" {
		return store.DeleteResult{}, fmt.Errorf("delete user: no name: %w", store.ErrNotFound)
	}
	return s.deleteTrees(ctx, "delete user "+user, e, user, func(ctx context.Context) (roots []int64, err error) {
		err = lineage{ctx, s.conn}.query(func(row scanner) error {
			var root int64
			err := row.Scan(&root)
			roots = append(roots, root)
			return err
		}, "SELECT root FROM run WHERE user = ?1 UNION SELECT -num FROM session WHERE user = ?1", user)
		return roots, err
	})
}

// deleteTrees deletes trees with what depends on them and the trajectories and memory of a
// user, "" for those without a user, and then every trace.
func (s *Store) deleteTrees(ctx context.Context, op string, e store.DeleteOptions, user string, find func(ctx context.Context) ([]int64, error)) (store.DeleteResult, error) {
	var out store.DeleteResult
	err := s.secureDelete(ctx, op, func(ctx context.Context) error {
		roots, err := find(ctx)
		if err != nil {
			return err
		}
		x := deleter{lineage: lineage{ctx, s.conn}, s: s, conn: s.conn, now: s.timeOr(e.Now), user: user}
		if len(roots) == 0 {
			out, err = x.deleteUserOnly(e.DryRun)
			return err
		}
		trees, err := x.dependents()
		if err != nil {
			return err
		}
		forks := trees.Forks(roots)
		if roots = trees.With(roots); !e.Force {
			if err := x.checkUnowned(roots); err != nil {
				return err
			}
		}
		names, err := x.treeNames(forks)
		if err != nil {
			return err
		}
		defer func() { out.Forks = names }()
		if e.DryRun {
			out, err = x.countRows(roots)
			return err
		}
		if err = x.writeTombstones(s, roots); err != nil {
			return err
		}
		out, err = x.deleteRows(roots)
		return err
	})
	if e.DryRun {
		return out, err
	}
	return s.compactAfter(ctx, op, out, err, e.DeferCompaction)
}

// secureDelete runs fn in a transaction whose deletions are overwritten. That rows
// refer to what is deleted is seen to by deleting them too.
func (s *Store) secureDelete(ctx context.Context, op string, fn func(ctx context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pragmas(ctx, "foreign_keys = OFF", "secure_delete = ON"); err != nil {
		return s.wrap(op, err)
	}
	err := s.beginTx(ctx)
	if err == nil {
		err = s.endTx(fn(context.WithoutCancel(ctx)))
	}
	if err == nil {
		err = s.syncLog() // what is deleted must not come back
	}
	s.runs = runCache{}
	return s.wrap(op, errors.Join(err, s.pragmas(context.WithoutCancel(ctx), "foreign_keys = ON", "secure_delete = OFF")))
}

func (s *Store) pragmas(ctx context.Context, list ...string) error {
	for _, p := range list {
		if _, err := s.conn.ExecContext(ctx, "PRAGMA "+p); err != nil {
			return err
		}
	}
	return nil
}

// compactAfter removes the remains of deleted data, unless that is deferred. It includes the
// remains of earlier calls that could not remove them and of processes that died.
func (s *Store) compactAfter(ctx context.Context, op string, out store.DeleteResult, err error, deferred bool) (store.DeleteResult, error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return out, err
	}
	var e error
	if deferred {
		out.Traces, e = s.hasTraces(ctx)
		s.compactionDeferred.Store(out.Traces)
	} else {
		_, e = s.Compact(ctx)
	}
	if e != nil {
		return out, errors.Join(err, fmt.Errorf("%s: what is deleted may have left traces in the file; delete again: %w", op, e))
	}
	if err == nil && out.Runs+out.Sessions+out.Trajectories+out.Memories+out.Learned+out.UserValues > 0 {
		out.Copies, err = filepath.Glob(escapeGlob(s.path) + ".v*.backup")
	}
	return out, err
}

// hasTraces reports whether parts of deleted data may be in the file or its log.
func (s *Store) hasTraces(ctx context.Context) (left bool, err error) {
	err = s.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM gone WHERE name = 'traces')").Scan(&left)
	return left, s.wrap("look for traces of deleted data", err)
}

// escapeGlob returns a path that stands for itself in a pattern.
func escapeGlob(path string) string {
	var b []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			b = append(b, '[', r, ']')
		default:
			b = append(b, r)
		}
	}
	return string(b)
}

// Compact rewrites the file and empties its log if a deletion has left traces, so that
// nothing of what was deleted is in either, and reports whether it did. It needs as much
// free space as the file has, and waits for readers, for as long as Options.BusyTimeout
// says.
func (s *Store) Compact(ctx context.Context) (bool, error) {
	left, err := s.hasTraces(ctx)
	if err != nil || !left {
		return false, err
	}
	return true, s.vacuum(ctx)
}

// vacuum rewrites the file and empties its log.
func (s *Store) vacuum(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitingAtOnce(ctx, func() error { return s.rewrite(ctx) })
}

func (s *Store) rewrite(ctx context.Context) error {
	if _, err := s.conn.ExecContext(ctx, "VACUUM"); err != nil {
		return s.wrap("rewrite the database", err)
	}
	var busy, inLog, moved int
	err := s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &inLog, &moved)
	if err == nil && busy != 0 {
		err = errors.New("another connection reads or writes the database")
	}
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "DELETE FROM gone WHERE name = 'traces'")
	}
	if err == nil {
		s.compactionDeferred.Store(false)
	}
	return s.wrap("empty the log", err)
}

// deleter deletes trees in a transaction.
type deleter struct {
	lineage
	s    *Store
	conn *sql.Conn
	now  time.Time
	user string // whose trajectories are deleted too, "" for none
}

// dependents reads what depends on what: forks of runs, of sessions, and contexts
// that continue those of other trees.
func (x deleter) dependents() (dependents.Trees, error) {
	d := dependents.Trees{}
	err := x.query(func(row scanner) error {
		var on, root int64
		err := row.Scan(&on, &root)
		d[on] = append(d[on], root)
		return err
	}, `SELECT b.root, f.root FROM run f JOIN run b ON b.num = f.base WHERE f.base IS NOT NULL AND f.root <> b.root
		UNION SELECT -parent, -num FROM session WHERE parent IS NOT NULL
		UNION SELECT o.root, r.root FROM context c JOIN run r ON r.num = c.run
			JOIN context x ON x.id = c.source JOIN run o ON o.num = x.run
			WHERE c.kind IN ('run', 'base') AND o.root <> r.root`)
	return d, err
}

// treeNames returns what trees are called, by their roots.
func (x deleter) treeNames(roots []int64) ([]store.Tree, error) {
	var out []store.Tree
	for _, root := range roots {
		var t store.Tree
		query, num, id := "SELECT id FROM run WHERE num = ?", root, &t.Run
		if root < 0 {
			query, num, id = "SELECT id FROM session WHERE num = ?", -root, &t.Session
		}
		if err := x.q.QueryRowContext(x.ctx, query, num).Scan(id); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// rootRuns returns the ids of the runs of trees that no other run has started. The list of roots is a JSON array.
func (x deleter) rootRuns(roots string) (ids []string, err error) {
	err = x.query(func(row scanner) error {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT id FROM run_row WHERE parent IS NULL AND root IN (SELECT value FROM json_each(?)) ORDER BY num", roots)
	return ids, err
}

// checkUnowned returns an error if a live process owns a run of the trees.
func (x deleter) checkUnowned(roots []int64) error {
	list, err := json.Marshal(roots)
	if err != nil {
		return err
	}
	return x.query(func(row scanner) error {
		var id, owner string
		if err := row.Scan(&id, &owner); err != nil {
			return err
		}
		return fmt.Errorf("run %s: %w: %s", id, store.ErrOwned, owner)
	}, "SELECT id, owner FROM run WHERE owner IS NOT NULL AND until > ? AND root IN (SELECT value FROM json_each(?)) LIMIT 1",
		x.now.UnixMilli(), string(list))
}

// deleteBeside deletes the data of the trees and of the user that is stored outside the trees.
func (x deleter) deleteBeside(list string, out *store.DeleteResult) (err error) {
	if out.Memories, err = x.deleteMemories(list); err != nil {
		return err
	}
	if out.Learned, err = x.deleteLearned(list); err != nil {
		return err
	}
	if out.UserValues, err = x.deleteUserState(); err != nil {
		return err
	}
	if err := x.deleteCachedOf(list); err != nil {
		return err
	}
	return x.deleteAccess()
}

// deleteRows deletes all rows of the trees.
func (x deleter) deleteRows(roots []int64) (out store.DeleteResult, err error) {
	list, err := json.Marshal(roots)
	if err != nil {
		return out, err
	}
	if out.RootRuns, err = x.rootRuns(string(list)); err != nil {
		return out, err
	}
	if out.Trajectories, err = x.deleteTrajectories(trajectoriesToDelete, string(list), nullText(x.user)); err != nil {
		return out, err
	}
	if _, err := x.conn.ExecContext(x.ctx, "CREATE TEMP TABLE doomed (root INTEGER PRIMARY KEY)"); err != nil {
		return out, err
	}
	if _, err := x.conn.ExecContext(x.ctx, "INSERT INTO doomed SELECT value FROM json_each(?)", string(list)); err != nil {
		return out, err
	}
	if err := x.deleteBeside(string(list), &out); err != nil {
		return out, err
	}
	for _, q := range []struct {
		query string
		count *int
	}{
		{"CREATE TEMP TABLE doomed_run AS SELECT num FROM run WHERE root IN (SELECT root FROM doomed)", nil},
		{`CREATE TEMP TABLE doomed_context AS SELECT id FROM context WHERE run IN (SELECT num FROM doomed_run)
			UNION SELECT context FROM session WHERE -num IN (SELECT root FROM doomed)`, nil},
		{`DELETE FROM message WHERE id IN (SELECT m.id FROM doomed_context c JOIN message m
			ON m.id >= c.id << 32 AND m.id < (c.id + 1) << 32)`, &out.Messages},
		{`DELETE FROM message_page WHERE id IN (SELECT m.id FROM doomed_context c JOIN message_page m
			ON m.id >= c.id << 32 AND m.id < (c.id + 1) << 32)`, nil},
		{`DELETE FROM value_part WHERE id IN (SELECT p.id FROM value v JOIN value_part p
			ON p.id >= v.id << 20 AND p.id < (v.id + 1) << 20 WHERE v.root IN (SELECT root FROM doomed))`, nil},
		{"DELETE FROM value WHERE root IN (SELECT root FROM doomed)", nil},
		{`DELETE FROM run_commit WHERE id IN (SELECT c.id FROM doomed_run r JOIN run_commit c
			ON c.id >= r.num << 32 AND c.id < (r.num + 1) << 32)`, nil},
		{"DELETE FROM context WHERE id IN (SELECT id FROM doomed_context)", nil},
		{"DELETE FROM checkpoint WHERE run IN (SELECT num FROM doomed_run)", nil},
		{"DELETE FROM run_crash WHERE run IN (SELECT num FROM doomed_run)", nil},
		{"DELETE FROM inbox WHERE run IN (SELECT num FROM doomed_run)", nil},
		{"DELETE FROM live_text WHERE run IN (SELECT num FROM doomed_run)", nil},
		{"DELETE FROM live_reader WHERE run IN (SELECT num FROM doomed_run)", nil},
		{"DELETE FROM notice WHERE run IN (SELECT num FROM doomed_run)", nil},
		{`DELETE FROM document WHERE run IN (SELECT id FROM run_row WHERE num IN (SELECT num FROM doomed_run)
			UNION ALL SELECT id FROM session WHERE -num IN (SELECT root FROM doomed))`, nil},
		{"DELETE FROM queue WHERE -session IN (SELECT root FROM doomed)", nil},
		{`DELETE FROM session_change WHERE id IN (SELECT c.id FROM doomed d JOIN session_change c
			ON c.id > -d.root << 32 AND c.id < (1 - d.root) << 32 WHERE d.root < 0)`, nil},
		{"INSERT OR REPLACE INTO gone (name, num) VALUES ('traces', 1)", nil}, // until Compact
		{`INSERT OR REPLACE INTO gone (name, num) SELECT 'run', max(n) FROM (SELECT max(num) AS n FROM run
			UNION SELECT num FROM gone WHERE name = 'run') HAVING max(n) IS NOT NULL`, nil},
		{`INSERT OR REPLACE INTO gone (name, num) SELECT 'session', max(n) FROM (SELECT max(num) AS n FROM session
			UNION SELECT num FROM gone WHERE name = 'session') HAVING max(n) IS NOT NULL`, nil},
		{"DELETE FROM run_row WHERE num IN (SELECT num FROM doomed_run)", &out.Runs},
		{"DELETE FROM program WHERE num NOT IN (SELECT program FROM run_row WHERE program IS NOT NULL)", nil},
		{"DELETE FROM session WHERE -num IN (SELECT root FROM doomed)", &out.Sessions},
		{"DROP TABLE doomed", nil},
		{"DROP TABLE doomed_run", nil},
		{"DROP TABLE doomed_context", nil},
	} {
		if q.query == "DROP TABLE doomed" {
			if err := x.unlinkUserState(); err != nil {
				return out, err
			}
		}
		res, err := x.conn.ExecContext(x.ctx, q.query)
		if err != nil {
			return out, fmt.Errorf("%.30s: %w", q.query, err)
		}
		if q.count == nil {
			continue
		}
		n, err := res.RowsAffected()
		if err != nil {
			return out, err
		}
		*q.count = int(n)
	}
	return out, x.s.sealDeleted(x.ctx)
}
