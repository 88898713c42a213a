package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// maxPruned is the number of sessions that one transaction prunes: writers wait for its end.
const maxPruned = 200

// PruneSessions deletes the sessions that the options select; see store.DeletionStore.
func (s *Store) PruneSessions(ctx context.Context, p store.PruneOptions) (sum store.DeleteResult, err error) {
	for more := true; more; {
		var out store.DeleteResult
		err := s.deletion(ctx, "prune sessions", p.DryRun, func(x *deleter) error {
			if err := x.setTime(p.Now); err != nil {
				return err
			}
			roots, kept, err := x.sessionsToPrune(&p)
			if err != nil {
				return err
			}
			if more = len(roots) > maxPruned && !p.DryRun; more {
				roots = roots[:maxPruned] // the youngest: what depends on a session is before it
			}
			out, err = x.deleteRows(roots)
			out.Kept = kept
			return err
		})
		if err != nil {
			return sum, err
		}
		addDeleted(&sum, &out)
	}
	if p.DryRun {
		return sum, nil
	}
	return s.afterDeletion(ctx, sum, nil, p.DeferCompaction)
}

func addDeleted(sum, out *store.DeleteResult) {
	sum.Sessions += out.Sessions
	sum.Runs += out.Runs
	sum.RootRuns = append(sum.RootRuns, out.RootRuns...)
	sum.Messages += out.Messages
	sum.Memories += out.Memories
	sum.UserValues += out.UserValues
	sum.Trajectories += out.Trajectories
	sum.Learned += out.Learned
	sum.Kept = out.Kept
}

// selectToPrune selects the sessions that the options select.
const selectToPrune = `SELECT num FROM (
		SELECT num, expires, said, waits, row_number() OVER (PARTITION BY user_id, flow ORDER BY said DESC, num DESC) AS place
		FROM (SELECT s.num, s.user_id, s.flow, s.expires, ` + lastMessageAt + ` AS said, ` + waitingRound + ` AS waits FROM session s) l
		WHERE ($2 = '' OR user_id = $2) AND ($3 = '' OR flow = $3)
	) p WHERE expires <= $1 OR NOT waits AND ($4 > 0 AND said < $1 - $4 OR $5 > 0 AND place > $5)`

// waitingRound is whether the round of a session waits for an answer or a timer.
const waitingRound = `EXISTS (SELECT 1 FROM run r WHERE r.num = s.holder AND (r.waiting IS NOT NULL OR r.due > 0 OR r.status = 'paused'))`

// sessionsToPrune returns the roots of the sessions to delete, the youngest first, and which of the selected sessions
// are kept.
func (x *deleter) sessionsToPrune(p *store.PruneOptions) (roots []int64, kept []store.KeptSession, err error) {
	nums, err := x.numbers(selectToPrune, x.now, text(p.User), text(p.Flow), p.OlderThan.Milliseconds(), int64(p.Keep))
	if err != nil || len(nums) == 0 {
		return nil, nil, err
	}
	taken := map[int64]bool{}
	for _, n := range nums {
		taken[-n] = true
	}
	trees, err := x.dependents()
	if err != nil {
		return nil, nil, err
	}
	owned := map[int64]bool{}
	err = x.query(func(row pgx.Row) error {
		var root int64
		err := row.Scan(&root)
		owned[root] = true
		return err
	}, "SELECT DISTINCT root FROM run WHERE owner <> '' AND until > $1", x.now)
	if err != nil {
		return nil, nil, err
	}
	if roots, kept, err = trees.Prunable(taken, owned, x.treeNames); err == nil {
		slices.Reverse(roots)
	}
	return roots, kept, err
}
