package sqlite

import (
	"context"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// ForgetMemories deletes the items that match the filter, or all items if the filter is zero,
// with their earlier versions. No byte of them remains in the file or its log. The Limit of the
// filter is ignored.
func (s *Store) ForgetMemories(ctx context.Context, f memory.Filter) (store.DeleteResult, error) {
	const op = "forget memories"
	var out store.DeleteResult
	err := s.secureWrite(ctx, op, func(ctx context.Context) (err error) {
		out.Memories, err = memoryWriter{ctx, s.conn}.deleteItems(
			"SELECT i.num FROM recall_item i JOIN recall_scope s ON s.num = i.scope WHERE"+itemCondition,
			"SELECT s.num FROM recall_scope s WHERE"+scopeCondition, filterArgs(f)...)
		return err
	})
	return s.compactAfter(ctx, op, out, err, false)
}

// deleteItems deletes the items that one query lists, and of the scopes that another
// lists those that are empty then.
func (r memoryWriter) deleteItems(items, scopes string, args ...any) (n int, err error) {
	if err := r.exec("CREATE TEMP TABLE doomed_item AS "+items, args...); err != nil {
		return 0, err
	}
	if err := r.exec("CREATE TEMP TABLE doomed_scope AS "+scopes, args...); err != nil {
		return 0, err
	}
	changed := false
	for _, q := range []struct {
		query string
		count *int
	}{
		{"DELETE FROM recall_index WHERE rowid IN (SELECT num FROM doomed_item)", nil},
		{"DELETE FROM recall_past WHERE item IN (SELECT num FROM doomed_item)", nil},
		{"DELETE FROM recall_item WHERE num IN (SELECT num FROM doomed_item)", &n},
		{"DELETE FROM doomed_scope WHERE num IN (SELECT scope FROM recall_item)", nil},
		{"DELETE FROM recall_call WHERE scope IN (SELECT num FROM doomed_scope)", nil},
		{"DELETE FROM recall_scope WHERE num IN (SELECT num FROM doomed_scope)", new(int)},
		{"DROP TABLE doomed_item", nil},
		{"DROP TABLE doomed_scope", nil},
	} {
		res, err := r.conn.ExecContext(r.ctx, q.query)
		if err != nil {
			return 0, err
		}
		if q.count == nil {
			continue
		}
		deleted, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		*q.count = int(deleted)
		changed = changed || deleted > 0
	}
	if !changed {
		return 0, nil
	}
	// A word that was deleted may have been left between the pages of the index.
	if err := r.exec("INSERT INTO recall_index (recall_index) VALUES ('rebuild')"); err != nil {
		return 0, err
	}
	return n, r.markTraces()
}

// scopesToDelete lists whose memory goes with what is erased: that of a user (?1, empty
// for none), and of the sessions that are the roots of trees (?2, a JSON list).
const scopesToDelete = `SELECT num FROM recall_scope WHERE user = ?1 AND user <> ''
	UNION SELECT c.num FROM recall_scope c JOIN session s ON s.id = c.session WHERE s.num IN (SELECT -value FROM json_each(?2))`

// deleteMemories deletes the memory of the user and of the doomed trees' sessions, and takes
// their names from what was learned in them. list are the trees' roots.
func (x deleter) deleteMemories(list string) (int, error) {
	r := memoryWriter{x.ctx, x.conn}
	n, err := r.deleteItems("SELECT num FROM recall_item WHERE scope IN ("+scopesToDelete+")", scopesToDelete, x.user, list)
	if err != nil {
		return 0, err
	}
	for _, table := range []string{"recall_item", "recall_past"} {
		if err := r.exec("UPDATE "+table+` SET run = NULL, session = NULL, round = NULL
			WHERE run IN (SELECT id FROM run WHERE root IN (SELECT value FROM json_each(?1)))
			OR session IN (SELECT id FROM session WHERE num IN (SELECT -value FROM json_each(?1)))`, list); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// countMemories returns how many items forget would delete.
func (x deleter) countMemories(list string) (n int, err error) {
	err = x.q.QueryRowContext(x.ctx, "SELECT count(*) FROM recall_item WHERE scope IN ("+scopesToDelete+")", x.user, list).Scan(&n)
	return n, err
}
