package sqlite

import (
	"context"
	"encoding/json"

	"github.com/weir-run/weir/store"
)

// PruneSessions deletes the sessions that p says, as DeleteSession does.
func (s *Store) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	const op = "prune sessions"
	p.Now = s.timeOr(p.Now)
	var out store.DeleteResult
	err := s.secureDelete(ctx, op, func(ctx context.Context) error {
		x := deleter{lineage: lineage{ctx, s.conn}, s: s, conn: s.conn, now: p.Now}
		roots, kept, err := x.sessionsToPrune(p)
		if err != nil {
			return err
		}
		defer func() { out.Kept = kept }()
		if len(roots) == 0 {
			return nil
		}
		if p.DryRun {
			out, err = x.countRows(roots)
			return err
		}
		if err = x.writeTombstones(s, roots); err != nil {
			return err
		}
		out, err = x.deleteRows(roots)
		return err
	})
	if p.DryRun {
		return out, err
	}
	return s.compactAfter(ctx, op, out, err, p.DeferCompaction)
}

// waitingRound is whether the round of a session waits for an answer or a timer.
const waitingRound = `EXISTS (SELECT 1 FROM run_row r WHERE r.num = s.holder AND (r.waiting IS NOT NULL OR r.due > 0 OR r.status = 'paused'))`

// sessionsToPrune lists the roots of the sessions to delete, and what is kept of those that p
// takes.
func (x deleter) sessionsToPrune(p store.PruneOptions) (roots []int64, kept []store.KeptSession, err error) {
	taken := map[int64]bool{}
	err = x.query(func(row scanner) error {
		var num int64
		err := row.Scan(&num)
		taken[-num] = true
		return err
	}, `SELECT num FROM (
			SELECT num, expires, said, waits, row_number() OVER (PARTITION BY user, flow ORDER BY said DESC, num DESC) AS place
			FROM (SELECT s.num, s.user, s.flow, s.expires, `+lastSaid+` AS said, `+waitingRound+` AS waits FROM session s)
			WHERE (?2 = '' OR user = ?2) AND (?3 = '' OR flow = ?3)
		) WHERE expires <= ?1 OR NOT waits AND (?4 > 0 AND said < ?1 - ?4 OR ?5 > 0 AND place > ?5)`,
		p.Now.UnixMilli(), p.User, p.Flow, p.OlderThan.Milliseconds(), p.Keep)
	if err != nil || len(taken) == 0 {
		return nil, nil, err
	}
	trees, err := x.dependents()
	if err != nil {
		return nil, nil, err
	}
	owned, err := x.ownedTrees()
	if err != nil {
		return nil, nil, err
	}
	return trees.Prunable(taken, owned, x.treeNames)
}

// ownedTrees returns the roots of the trees that live processes work on.
func (x deleter) ownedTrees() (map[int64]bool, error) {
	out := map[int64]bool{}
	err := x.query(func(row scanner) error {
		var root int64
		err := row.Scan(&root)
		out[root] = true
		return err
	}, "SELECT root FROM run WHERE owner IS NOT NULL AND until > ?", x.now.UnixMilli())
	return out, err
}

// countRows says what deleting trees would take away.
func (x deleter) countRows(roots []int64) (out store.DeleteResult, err error) {
	list, err := json.Marshal(roots)
	if err != nil {
		return out, err
	}
	if out.RootRuns, err = x.rootRuns(string(list)); err != nil {
		return out, err
	}
	if out.Trajectories, err = x.countTrajectories(trajectoriesToDelete, string(list), nullText(x.user)); err != nil {
		return out, err
	}
	err = x.q.QueryRowContext(x.ctx, `WITH doomed (root) AS (SELECT value FROM json_each(?))
		SELECT (SELECT count(*) FROM session WHERE -num IN doomed), (SELECT count(*) FROM run WHERE root IN doomed),
			(SELECT count(*) FROM (SELECT id FROM context WHERE run IN (SELECT num FROM run WHERE root IN doomed)
					UNION SELECT context FROM session WHERE -num IN doomed) c
				JOIN message m ON m.id >= c.id << 32 AND m.id < (c.id + 1) << 32)`, string(list)).Scan(&out.Sessions, &out.Runs, &out.Messages)
	if err == nil {
		out.Memories, err = x.countMemories(string(list))
	}
	if err == nil {
		out.Learned, err = x.countLearned(string(list))
	}
	if err == nil {
		out.UserValues, err = x.countUserState()
	}
	return out, err
}
