package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Acquire makes owner the owner of the run until now+ttl. The fence is new unless owner has the
// run already. The error is store.ErrOwned if the lease of another owner has not expired, and
// store.ErrNotFound if there is no such run. Acquiring an executing run whose lease has expired
// counts as a crash.
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, "", owner, ttl)
}

// Seize is Acquire from an owner that is known to be dead; its lease need not have expired. The
// error is store.ErrOwned if another owner has acquired the run meanwhile.
func (s *Store) Seize(ctx context.Context, id, from, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, from, owner, ttl)
}

func (s *Store) acquire(ctx context.Context, id, from, owner string, ttl time.Duration) (store.Lease, error) {
	now := s.clock()
	l := store.Lease{Run: id, Owner: owner, Until: now.Add(ttl).Truncate(time.Millisecond)}
	err := s.write(ctx, "acquire run "+id, func(ctx context.Context) error {
		var num, until int64
		var holder, status string
		err := s.prepared().QueryRowContext(ctx, `SELECT r.num, coalesce(r.owner, ''), r.until, r.fence, r.status || coalesce(r.activity, ''), coalesce(k.count, 0)
			FROM run_row r LEFT JOIN run_crash k ON k.run = r.num WHERE r.id = ?`, id,
		).Scan(&num, &holder, &until, &l.Fence, &status, &l.Crashes)
		if err != nil {
			return err
		}
		another := holder != "" && holder != owner
		if another && holder != from && until > now.UnixMilli() {
			return fmt.Errorf("%w: %s has it until %s", store.ErrOwned, holder, time.UnixMilli(until).UTC().Format(time.RFC3339))
		}
		if holder != owner {
			l.Fence++
		}
		if another {
			if _, err := s.prepared().ExecContext(ctx, "DELETE FROM live_text WHERE run = ?", num); err != nil {
				return err
			}
		}
		l.TakenOver = another && status == engine.Running.String()
		if l.TakenOver {
			l.Crashes++
			if _, err := s.prepared().ExecContext(ctx, `INSERT INTO run_crash (run, count) VALUES (?1, ?2)
				ON CONFLICT (run) DO UPDATE SET count = ?2`, num, l.Crashes); err != nil {
				return err
			}
		}
		_, err = s.prepared().ExecContext(ctx, "UPDATE run_row SET fence = ?, owner = ?, until = ? WHERE num = ?",
			l.Fence, owner, l.Until.UnixMilli(), num)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// Renew extends leases to now+ttl and returns the ids of the runs that are no
// longer theirs.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]string, error) {
	var lost []string
	if len(leases) == 0 {
		return lost, nil
	}
	until := s.clock().Add(ttl).UnixMilli()
	err := s.write(ctx, "renew leases", func(ctx context.Context) error {
		lost = nil
		for _, l := range leases {
			res, err := s.prepared().ExecContext(ctx, "UPDATE run_row SET until = ? WHERE id = ? AND fence = ? AND owner = ?",
				until, l.Run, l.Fence, l.Owner)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				lost = append(lost, l.Run)
			}
		}
		return nil
	})
	return lost, err
}

// Release ends the lease of a run. It does nothing if the lease was lost.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	// The fence moves at once, so that a commit still on its way is refused.
	_, err := s.exec(ctx, "release run "+l.Run,
		"UPDATE run_row SET owner = NULL, until = 0, fence = fence + 1 WHERE id = ? AND fence = ? AND owner = ?",
		l.Run, l.Fence, l.Owner)
	return err
}

// NextDue returns the time until the next timer of a run without an owner is due; see
// store.RecoveryStore.
func (s *Store) NextDue(ctx context.Context) (time.Duration, bool, error) {
	now, next := s.clock().UnixMilli(), int64(0)
	err := s.reader.QueryRowContext(ctx, `SELECT coalesce((SELECT due FROM run
		WHERE due > 0 AND due > ?1 AND (owner IS NULL OR until <= ?1) ORDER BY due LIMIT 1), 0)`, now).Scan(&next)
	if err != nil || next == 0 {
		return 0, false, s.wrap("find next timer", err)
	}
	return time.Duration(next-now) * time.Millisecond, true, nil
}

// Unfinished lists at most limit runs that a process should be executing now and
// that except does not own, with a number above after, the oldest first.
func (s *Store) Unfinished(ctx context.Context, except string, after int64, limit int) ([]store.Unfinished, error) {
	now := s.clock().UnixMilli()
	out := []store.Unfinished{}
	err := s.query(ctx, func(row scanner) error {
		var u store.Unfinished
		var until int64
		var status string
		err := row.Scan(&u.Number, &u.Run, &u.Parent, &u.Session, &status, &u.Activity, &u.Due, &u.Posts, &u.Owner, &until, &u.Crashes)
		if err != nil {
			return err
		}
		u.Expired = u.Owner != "" && until <= now
		u.Status, err = parseStatus(status)
		out = append(out, u)
		return err
	}, `SELECT r.num, r.id, coalesce(r.parent, ''), coalesce(s.id, ''), r.status, coalesce(r.activity, 0), r.due,
			EXISTS (SELECT 1 FROM inbox i WHERE i.run = r.num), coalesce(r.owner, ''), r.until, coalesce(k.count, 0)
		FROM run_row r LEFT JOIN session s ON s.num = r.session LEFT JOIN run_crash k ON k.run = r.num
		WHERE r.num IN (
			SELECT num FROM run_row WHERE status IN ('running', 'pending') AND coalesce(activity, 0) < 2
				AND (status = 'running' OR session IS NOT NULL)
			UNION SELECT num FROM run_row WHERE due > 0 AND due <= ?1
			UNION SELECT run FROM inbox)
		AND (?2 = '' OR r.owner IS NOT ?2) AND r.num > ?3 AND r.status IN ('running', 'pending', 'paused')
		ORDER BY r.num LIMIT ?4`,
		now, except, after, limit)
	if err != nil {
		return nil, s.wrap("list unfinished runs", err)
	}
	return out, nil
}

// PendingSessions lists the sessions in which messages wait or whose round was begun
// and has no commit, at most limit with ids after the given one, by id.
func (s *Store) PendingSessions(ctx context.Context, after string, limit int) ([]string, error) {
	return s.queryTexts(ctx, "list sessions with messages", `SELECT id FROM session
		WHERE num IN (SELECT session FROM queue WHERE run IS NULL
			UNION SELECT session FROM run_row WHERE status IN ('running', 'pending') AND coalesce(activity, 0) < 2 AND status = 'pending' AND session IS NOT NULL)
		AND id > ? ORDER BY id LIMIT ?`, after, limit)
}

// FindRunIDs lists the ids of at most 100 runs that begin with prefix, in
// alphabetical order.
func (s *Store) FindRunIDs(ctx context.Context, prefix string) ([]string, error) {
	return s.queryTexts(ctx, "find runs", `SELECT id FROM run
		WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 100`, prefix)
}

// queryTexts runs a query of one text column.
func (s *Store) queryTexts(ctx context.Context, op, query string, args ...any) ([]string, error) {
	out := []string{}
	err := s.query(ctx, func(row scanner) error {
		var t string
		err := row.Scan(&t)
		out = append(out, t)
		return err
	}, query, args...)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return out, nil
}
