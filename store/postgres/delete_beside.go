package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// deleteBeside deletes what is kept beside the trees for them and for the user. A dry run counts it.
func (x *deleter) deleteBeside(d *doomed, out *store.DeleteResult) (err error) {
	if out.Trajectories, err = x.doomedTrajectories(d); err != nil {
		return err
	}
	if out.Memories, err = x.doomedMemories(d); err != nil {
		return err
	}
	if out.Learned, err = x.doomedLearned(d); err != nil {
		return err
	}
	if x.user != "" {
		err = x.queryRow([]any{&out.UserValues}, "SELECT count(*) FROM user_value WHERE user_id = $1 AND value IS NOT NULL", text(x.user))
	}
	if err != nil || x.dry {
		return err
	}
	if x.user != "" {
		destroyed, err := x.exec("DELETE FROM data_key WHERE user_id = $1", text(x.user)) // before all else of the user
		if err != nil {
			return err
		}
		x.destroyed = destroyed > 0
		for _, table := range []string{"user_value", "access_token", "access_request", "document"} {
			x.queue("DELETE FROM "+table+" WHERE user_id = $1", text(x.user))
		}
		x.markDeletion()
	}
	if len(d.roots) == 0 {
		return x.flush()
	}
	return x.deleteCached(d)
}

// doomedTrajectories deletes the trajectories of the user and of the trees. A run without a session has its
// trajectory under its own id.
func (x *deleter) doomedTrajectories(d *doomed) (n int, err error) {
	const where = ` WHERE ($1 <> '' AND r.user_id = $1) OR r.session = ANY($2)
		OR r.session = ANY($3) AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = r.session)`
	args := []any{text(x.user), d.sessionIDs, d.ids}
	if x.dry {
		err = x.queryRow([]any{&n}, "SELECT count(*) FROM trajectory_round r"+where, args...)
		return n, err
	}
	return x.deleteTrajectories(where, args...)
}

// doomedMemories deletes the memory of the user and of the sessions, and removes the names of the trees from the
// origins of other items.
func (x *deleter) doomedMemories(d *doomed) (n int, err error) {
	const scopes = "SELECT s.num FROM recall_scope s WHERE ($1 <> '' AND s.user_id = $1) OR s.session = ANY($2)"
	args := []any{text(x.user), d.sessionIDs}
	if x.dry {
		err = x.queryRow([]any{&n}, "SELECT count(*) FROM recall_item WHERE scope IN ("+scopes+")", args...)
		return n, err
	}
	if n, err = x.forget("SELECT num FROM recall_item WHERE scope IN ("+scopes+")", args, scopes, args); err != nil {
		return n, err
	}
	for _, table := range []string{"recall_item", "recall_past"} {
		x.queue("UPDATE "+table+" SET run_id = '', session = '', round = 0 WHERE run_id = ANY($1) OR session = ANY($2)", d.ids, d.sessionIDs)
	}
	return n, nil
}

// doomedLearned deletes the code that was learned for the user or in runs of the trees.
func (x *deleter) doomedLearned(d *doomed) (int, error) {
	runs := map[string]bool{}
	for _, id := range d.ids {
		runs[unescapeText(id)] = true
	}
	var keys []string
	err := x.query(func(row pgx.Row) error {
		var key string
		var data []byte
		if err := row.Scan(into(&key), &data); err != nil {
			return err
		}
		gone := x.user != "" && strings.HasPrefix(key, store.LearnedCodePrefixOf(x.user))
		if v, err := engine.DecodeValue(data); err == nil && !gone {
			gone = namesRun(v, runs)
		}
		if gone {
			keys = append(keys, escapeText(key))
		}
		return nil
	}, "SELECT key, value FROM cache WHERE key LIKE $1", likePrefix(store.LearnedCodePrefix))
	if err == nil && len(keys) > 0 && !x.dry {
		x.queue("DELETE FROM cache WHERE key = ANY($1)", keys)
		x.markDeletion()
	}
	return len(keys), err
}

// namesRun reports whether learned code names one of the runs as its origin.
func namesRun(v engine.Value, runs map[string]bool) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, name := range []string{"run", "confirmed"} {
		if id, ok := m[name].(string); ok && runs[id] {
			return true
		}
	}
	return false
}

// deleteCached deletes what is cached for the users of the trees' runs, and what all users share. Learned code is
// deleted by itself.
func (x *deleter) deleteCached(d *doomed) error {
	var prefixes []string
	err := x.query(func(row pgx.Row) error {
		var user string
		err := row.Scan(into(&user))
		prefixes = append(prefixes, escapeText(store.CachePrefixOf(user)))
		return err
	}, "SELECT DISTINCT user_id FROM run WHERE num = ANY($1)", d.runs)
	x.queue(`DELETE FROM cache WHERE NOT starts_with(key, $1) AND (NOT starts_with(key, $2)
		OR EXISTS (SELECT 1 FROM unnest($3::text[]) AS u (prefix) WHERE starts_with(cache.key, u.prefix)))`,
		store.LearnedCodePrefix, store.CachePrefix, prefixes)
	return err
}
