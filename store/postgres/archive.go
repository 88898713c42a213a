package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// neededRuns selects the runs without which run $1 cannot be restored, and its children: its
// parent, its base, the rounds before it, and the rounds that the sessions had had from which its session was forked,
// directly or not.
const neededRuns = `WITH RECURSIVE up (session, rounds) AS (
		SELECT s.parent, s.parent_round FROM run r JOIN session s ON s.num = r.session WHERE r.num = $1
		UNION SELECT s.parent, s.parent_round FROM up JOIN session s ON s.num = up.session)
	SELECT p.num FROM run r JOIN run p ON p.id = r.parent WHERE r.num = $1 AND r.parent <> ''
	UNION SELECT c.num FROM run r JOIN run c ON c.parent = r.id WHERE r.num = $1
	UNION SELECT base FROM run WHERE num = $1 AND base IS NOT NULL
	UNION SELECT b.num FROM run r JOIN run b ON b.session = r.session AND b.round < r.round WHERE r.num = $1
	UNION SELECT b.num FROM up JOIN run b ON b.session = up.session AND b.round <= up.rounds`

// Archive lists what an export of a run holds; see store.ArchiveStore.
func (s *Store) Archive(ctx context.Context, run string) (runs []store.ArchivedRun, sessions []store.ArchivedSession, err error) {
	num, err := s.number(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	wanted, known := []int64{num}, map[int64]bool{}
	for len(wanted) > 0 && err == nil {
		n := wanted[0]
		if wanted = wanted[1:]; known[n] {
			continue
		}
		known[n] = true
		err = s.query(ctx, func(row pgx.Row) error {
			var other int64
			err := row.Scan(&other)
			wanted = append(wanted, other)
			return err
		}, neededRuns, n)
	}
	if err == nil {
		runs, err = s.archivedRuns(ctx, slices.Sorted(maps.Keys(known)))
	}
	if err == nil {
		sessions, err = s.archivedSessions(ctx, runs)
	}
	return runs, sessions, s.wrap("export run "+run, err)
}

// archivedRuns reads the rows of runs, by number.
func (s *Store) archivedRuns(ctx context.Context, nums []int64) (out []store.ArchivedRun, err error) {
	err = s.query(ctx, func(row pgx.Row) error {
		var a store.ArchivedRun
		var created int64
		var base store.Base
		var waiting, usage, failure []byte
		err := row.Scan(into(&a.ID), &a.Number, into(&a.Flow), into(&a.Fingerprint), into(&a.User), into(&a.Parent), into(&a.Origin), &created,
			into(&base.Run), &base.Seq, into(&a.Session), &a.Round, &a.Secret, &a.Status, &a.Due, &waiting, &usage, &failure)
		if a.Created = time.UnixMilli(created).UTC(); base.Run != "" {
			a.Base = &base
		}
		a.Waiting, a.Usage, a.Failure = string(waiting), string(usage), string(failure)
		out = append(out, a)
		return err
	}, `SELECT r.id, r.num, r.flow, r.fingerprint, r.user_id, r.parent, r.origin, r.created,
			coalesce((SELECT id FROM run b WHERE b.num = r.base), ''), r.base_seq, coalesce(s.id, ''), r.round, r.secret,
			r.status, r.due, r.waiting, r.usage, r.failure
		FROM run r LEFT JOIN session s ON s.num = r.session WHERE r.num = ANY($1) ORDER BY r.num`, nums)
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
		a := store.ArchivedSession{
			ID: x.ID, User: x.User, Flow: x.Flow, Thread: x.Thread, Created: x.Created.UTC(), Parent: x.Parent, ParentLength: x.ParentLength,
		}
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

// archivedState lists the changes of a session's state that no round made, all or those
// before a round.
func (s *Store) archivedState(ctx context.Context, id string, round int, all bool) (out []store.ArchivedState, err error) {
	err = s.query(ctx, func(row pgx.Row) error {
		var a store.ArchivedState
		var value []byte
		var at int64
		err := row.Scan(&a.Round, into(&a.Key), &value, into(&a.Reducer), into(&a.By), &at)
		a.Value, a.At = string(value), time.UnixMilli(at).UTC()
		out = append(out, a)
		return err
	}, `SELECT c.round, c.key, c.value, c.reducer, c.sender, c.at FROM session s JOIN session_change c ON c.session = s.num
		WHERE s.id = $1 AND c.run IS NULL AND (c.round < $2 OR $3) ORDER BY c.num`, text(id), round, all)
	return out, err
}
