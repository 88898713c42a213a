package sqlite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/store"
)

// Archive lists the contents of an export of a run, in the order in which the runs were
// created: its tree, the runs that share their history with it, and the rounds of its session
// up to its own. The error is store.ErrNotFound if there is no such run.
func (s *Store) Archive(ctx context.Context, run string) (runs []store.ArchivedRun, sessions []store.ArchivedSession, err error) {
	num, err := s.number(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	wanted, known := []int64{num}, map[int64]bool{}
	for len(wanted) > 0 && err == nil {
		n := wanted[0]
		if wanted = wanted[1:]; !known[n] {
			known[n] = true
			err = s.query(ctx, func(row scanner) error {
				var other int64
				err := row.Scan(&other)
				wanted = append(wanted, other)
				return err
			}, neededRuns, n)
		}
	}
	if err == nil {
		runs, err = s.archived(ctx, known)
	}
	if err == nil {
		sessions, err = s.archivedSessions(ctx, runs)
	}
	return runs, sessions, s.wrap("export run "+run, err)
}

// neededRuns are the runs without which one cannot be restored, and its children: its
// parent, its base, the round before it, and the rounds that the sessions had had from which its session was forked,
// directly or not.
const neededRuns = `WITH RECURSIVE up (session, rounds) AS (
		SELECT s.parent, s.parent_round FROM run_row r JOIN session s ON s.num = r.session WHERE r.num = ?1
		UNION SELECT s.parent, s.parent_round FROM up JOIN session s ON s.num = up.session)
	SELECT p.num FROM run_row r JOIN run_row p ON p.id = r.parent WHERE r.num = ?1
	UNION SELECT c.num FROM run_row r JOIN run_row c ON c.parent = r.id WHERE r.num = ?1
	UNION SELECT base FROM run_row WHERE num = ?1 AND base IS NOT NULL
	UNION SELECT b.num FROM run_row r JOIN run_row b ON b.session = r.session AND b.round < r.round WHERE r.num = ?1
	UNION SELECT b.num FROM up JOIN run_row b ON b.session = up.session AND b.round <= up.rounds`

func (s *Store) archived(ctx context.Context, nums map[int64]bool) (out []store.ArchivedRun, err error) {
	list := make([]int64, 0, len(nums))
	for n := range nums {
		list = append(list, n)
	}
	ids, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, func(row scanner) error {
		var a store.ArchivedRun
		var created int64
		var base store.Base
		err := row.Scan(&a.ID, &a.Number, &a.Flow, &a.Fingerprint, &a.User, &a.Parent, &a.Origin, &created, &base.Run, &base.Seq,
			&a.Session, &a.Round, &a.Secret, &a.Unchained, &a.Status, &a.Due, &a.Waiting, &a.Usage, &a.Failure)
		if a.Created = time.UnixMilli(created).UTC(); base.Run != "" {
			a.Base = &base
		}
		out = append(out, a)
		return err
	}, `SELECT r.id, r.num, r.flow, r.fingerprint, coalesce(r.user, ''), coalesce(r.parent, ''), coalesce(r.origin, ''), r.created,
			coalesce((SELECT id FROM run_row b WHERE b.num = r.base), ''), coalesce(r.base_seq, 0),
			coalesce(s.id, ''), coalesce(r.round, 0), coalesce(o.salt, t.salt), coalesce(w.unchained, 0),
			r.status, r.due, coalesce(r.waiting, ''), coalesce(r.usage, ''), coalesce(r.error, '')
		FROM run r JOIN run_row w ON w.num = r.num LEFT JOIN session s ON s.num = r.session
		LEFT JOIN run_row o ON o.num = r.root LEFT JOIN session t ON t.num = -r.root
		WHERE r.num IN (SELECT value FROM json_each(?)) ORDER BY r.num`, string(ids))
	return out, err
}

// ArchiveSession returns a session and those that it was forked from; see store.ArchiveStore.
func (s *Store) ArchiveSession(ctx context.Context, session string) (out []store.ArchivedSession, err error) {
	x, err := s.Session(ctx, session)
	if err == nil {
		out, err = s.archiveSessions(ctx, map[string]int{session: x.Rounds})
	}
	return out, s.wrap("export session "+session, err)
}

func (s *Store) archivedSessions(ctx context.Context, runs []store.ArchivedRun) ([]store.ArchivedSession, error) {
	last := map[string]int{}
	for i := range runs {
		if id := runs[i].Session; id != "" {
			last[id] = max(last[id], runs[i].Round)
		}
	}
	return s.archiveSessions(ctx, last)
}

// archiveSessions reads sessions as they were after the given rounds, and those that they were forked from.
func (s *Store) archiveSessions(ctx context.Context, last map[string]int) (out []store.ArchivedSession, err error) {
	wanted := slices.Sorted(maps.Keys(last))
	for i := 0; i < len(wanted); i++ {
		id := wanted[i]
		x, err := s.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		a := store.ArchivedSession{ID: x.ID, User: x.User, Flow: x.Flow, Thread: x.Thread, Created: x.Created.UTC(), Parent: x.Parent, ParentLength: x.ParentLength}
		if x.Parent != "" {
			a.ParentRound = &x.ParentRound
			if !slices.Contains(wanted, x.Parent) {
				wanted = append(wanted, x.Parent)
			}
		}
		if x.Rounds == last[id] {
			a.Carryover = x.Carryover
		}
		if a.State, err = s.archivedState(ctx, id, last[id], x.Rounds == last[id]); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
