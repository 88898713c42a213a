package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/dependents"
)

// The unit of deletion is a tree of runs, or a session with the trees of its rounds: all that has one root. Trees that
// share a past with it depend on it.

// DeleteSession deletes a session with its rounds and what depends on them; see store.DeletionStore.
func (s *Store) DeleteSession(ctx context.Context, id string, o store.DeleteOptions) (store.DeleteResult, error) {
	return s.deleteTrees(ctx, "delete session "+id, o, "", func(t *tx) ([]int64, error) {
		var num int64
		err := t.queryRow([]any{&num}, "SELECT num FROM session WHERE id = $1", text(id))
		return []int64{-num}, err
	})
}

// DeleteRun deletes a run with its children and what depends on them; see store.DeletionStore.
func (s *Store) DeleteRun(ctx context.Context, id string, o store.DeleteOptions) (store.DeleteResult, error) {
	return s.deleteTrees(ctx, "delete run "+id, o, "", func(t *tx) ([]int64, error) {
		var num, root int64
		var whole string
		err := t.queryRow([]any{&num, &root, into(&whole)}, `SELECT num, root, coalesce(
			(SELECT 'session ' || s.id FROM session s WHERE s.num = -r.root), (SELECT 'run ' || o.id FROM run o WHERE o.num = r.root), '')
			FROM run r WHERE id = $1`, text(id))
		if err == nil && num != root {
			err = fmt.Errorf("%w: of %s", store.ErrNotRoot, whole)
		}
		return []int64{root}, err
	})
}

// DeleteUser deletes the sessions, runs, trajectories, values and memory of a user; see store.DeletionStore.
func (s *Store) DeleteUser(ctx context.Context, user string, o store.DeleteOptions) (store.DeleteResult, error) {
	if user == "" {
		return store.DeleteResult{}, fmt.Errorf("delete user: no name: %w", store.ErrNotFound)
	}
	return s.deleteTrees(ctx, "delete user "+user, o, user, func(t *tx) ([]int64, error) {
		return t.numbers("SELECT root FROM run WHERE user_id = $1 UNION SELECT -num FROM session WHERE user_id = $1", text(user))
	})
}

// lockWriters keeps other transactions from writing to sessions and runs until this one ends: a fork that another
// process makes meanwhile would share what is deleted. Readers do not wait.
const lockWriters = "LOCK TABLE session, run IN EXCLUSIVE MODE"

// awaitDeletions keeps a deletion from beginning, after one that works has ended. A transaction that refers to runs or
// sessions without locking rows of session first begins with it, so that it reads nothing that is being deleted.
const awaitDeletions = "LOCK TABLE session IN ROW SHARE MODE"

// deletion runs do in a transaction that deletes, or in one that only reads.
func (s *Store) deletion(ctx context.Context, op string, dry bool, do func(x *deleter) error) error {
	drafts := tombstones{}
	if dry {
		return s.wrap(op, s.readSnapshot(ctx, func(t *tx) error { return do(&deleter{tx: t, drafts: drafts, dry: true}) }))
	}
	return s.write(ctx, op, func(t *tx) error {
		t.queue(lockWriters)
		return do(&deleter{tx: t, drafts: drafts})
	})
}

// deleter deletes trees in a transaction.
type deleter struct {
	*tx
	now    int64
	user   string // whose trajectories, values and memory are deleted too; "" for none
	dry    bool
	drafts tombstones

	destroyed bool // the data key of the user
}

// setTime sets the time that decides which leases have expired.
func (x *deleter) setTime(now time.Time) error {
	if x.now = now.UnixMilli(); now.IsZero() {
		return x.queryRow([]any{&x.now}, "SELECT coalesce($1::bigint, weir_now())", x.s.nowArg())
	}
	return nil
}

func (s *Store) deleteTrees(ctx context.Context, op string, o store.DeleteOptions, user string, find func(t *tx) ([]int64, error)) (out store.DeleteResult, err error) {
	destroyed := false
	err = s.deletion(ctx, op, o.DryRun, func(x *deleter) error {
		x.user = user
		if err := x.setTime(o.Now); err != nil {
			return err
		}
		roots, err := find(x.tx)
		if err != nil {
			return err
		}
		trees, err := x.dependents()
		if err != nil {
			return err
		}
		forks := trees.Forks(roots)
		if roots = trees.With(roots); !o.Force {
			if err := x.checkUnowned(roots); err != nil {
				return err
			}
		}
		names, err := x.treeNames(forks)
		if err == nil {
			out, err = x.deleteRows(roots)
		}
		out.Forks, destroyed = names, x.destroyed
		return err
	})
	if o.DryRun || err != nil {
		return out, err
	}
	if out, err = s.afterDeletion(ctx, out, nil, o.DeferCompaction); destroyed && out.Remains != "" {
		out.Remains += remainsEncrypted
	}
	return out, err
}

// dependents reads which trees depend on which: forks of runs, forks of sessions, and contexts that continue those of
// other trees.
func (x *deleter) dependents() (dependents.Trees, error) {
	d := dependents.Trees{}
	err := x.query(func(row pgx.Row) error {
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

// treeNames returns the ids of trees by their roots.
func (x *deleter) treeNames(roots []int64) (out []store.Tree, err error) {
	err = x.query(func(row pgx.Row) error {
		var t store.Tree
		err := row.Scan(into(&t.Session), into(&t.Run))
		out = append(out, t)
		return err
	}, `SELECT coalesce((SELECT id FROM session s WHERE s.num = -u.root), ''), coalesce((SELECT id FROM run r WHERE r.num = u.root), '')
		FROM unnest($1::bigint[]) WITH ORDINALITY AS u (root, n) ORDER BY u.n`, roots)
	return out, err
}

// checkUnowned fails with store.ErrOwned if a live process owns a run of the trees.
func (x *deleter) checkUnowned(roots []int64) error {
	return x.query(func(row pgx.Row) error {
		var id, owner string
		if err := row.Scan(into(&id), into(&owner)); err != nil {
			return err
		}
		return fmt.Errorf("run %s: %w: %s", id, store.ErrOwned, owner)
	}, "SELECT id, owner FROM run WHERE owner <> '' AND until > $1 AND root = ANY($2) LIMIT 1", x.now, roots)
}

// doomed are the numbers of what is deleted.
type doomed struct {
	roots, sessions, runs, contexts []int64
	ids, sessionIDs                 []string // as the tables have them
	rootRuns                        []string // the ids of the runs that no other run has started
}

func (x *deleter) readDoomed(roots []int64) (d doomed, err error) {
	d.roots = roots
	err = x.query(func(row pgx.Row) error {
		var n int64
		var id string
		var isRoot bool
		err := row.Scan(&n, &id, &isRoot)
		if d.runs, d.ids = append(d.runs, n), append(d.ids, id); isRoot {
			d.rootRuns = append(d.rootRuns, unescapeText(id))
		}
		return err
	}, "SELECT num, id, parent = '' FROM run WHERE root = ANY($1) ORDER BY num", roots)
	if err != nil {
		return d, err
	}
	err = x.query(func(row pgx.Row) error {
		var n int64
		var id string
		err := row.Scan(&n, &id)
		d.sessions, d.sessionIDs = append(d.sessions, n), append(d.sessionIDs, id)
		return err
	}, "SELECT num, id FROM session WHERE -num = ANY($1)", roots)
	if err != nil {
		return d, err
	}
	d.contexts, err = x.numbers("SELECT id FROM context WHERE run = ANY($1) UNION SELECT context FROM session WHERE num = ANY($2)", d.runs, d.sessions)
	return d, err
}

// deleteRows deletes all rows of the trees, and what is kept for the user. A dry run counts them.
func (x *deleter) deleteRows(roots []int64) (out store.DeleteResult, err error) {
	d, err := x.readDoomed(roots)
	if err != nil {
		return out, err
	}
	out.Runs, out.Sessions, out.RootRuns = len(d.runs), len(d.sessions), d.rootRuns
	if err = x.queryRow([]any{&out.Messages}, "SELECT count(*) FROM message WHERE context = ANY($1)", d.contexts); err != nil {
		return out, err
	}
	if err = x.deleteBeside(&d, &out); err != nil || x.dry {
		return out, err
	}
	if len(d.roots) == 0 {
		return out, nil
	}
	if err = x.writeTombstones(d.runs); err != nil {
		return out, err
	}
	for _, q := range []struct {
		query string
		arg   any
	}{
		{"DELETE FROM message WHERE context = ANY($1)", d.contexts},
		{"DELETE FROM run_commit WHERE run = ANY($1)", d.runs},
		{"DELETE FROM context WHERE id = ANY($1)", d.contexts},
		{"DELETE FROM checkpoint WHERE run = ANY($1)", d.runs},
		{"DELETE FROM inbox WHERE run = ANY($1)", d.runs},
		{"DELETE FROM live_text WHERE run = ANY($1)", d.runs},
		{"DELETE FROM live_reader WHERE run = ANY($1)", d.runs},
		{"DELETE FROM notice WHERE run = ANY($1)", d.runs},
		{"DELETE FROM document WHERE run_id = ANY($1)", append(slices.Clone(d.ids), d.sessionIDs...)},
		{"UPDATE user_value SET run = NULL WHERE run = ANY($1)", d.runs},
		{"DELETE FROM queue WHERE session = ANY($1)", d.sessions},
		{"DELETE FROM session_change WHERE session = ANY($1)", d.sessions},
		{"DELETE FROM run WHERE num = ANY($1)", d.runs},
		{"DELETE FROM session WHERE num = ANY($1)", d.sessions},
	} {
		x.queue(q.query, q.arg)
	}
	x.markDeletion()
	return out, x.flush()
}
