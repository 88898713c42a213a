package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/store"
)

// Acquire gives owner the run until now+ttl, under a fence that is new unless
// owner has the run already. store.ErrOwned where another's lease has not run
// out, store.ErrNotFound where there is no such run.
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration, now time.Time) (store.Lease, error) {
	l := store.Lease{Run: id, Owner: owner, Until: now.Add(ttl).Truncate(time.Millisecond)}
	err := s.write(ctx, "acquire run "+id, func(ctx context.Context) error {
		err := s.conn.QueryRowContext(ctx, `
			UPDATE run_row SET fence = fence + (owner IS NOT ?2), owner = ?2, until = ?3
			WHERE id = ?1 AND (owner IS NULL OR owner = ?2 OR until <= ?4) RETURNING fence`,
			id, owner, l.Until.UnixMilli(), now.UnixMilli()).Scan(&l.Fence)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var holder string
		var until int64
		err = s.conn.QueryRowContext(ctx, "SELECT coalesce(owner, ''), until FROM run WHERE id = ?", id).Scan(&holder, &until)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s has it until %s", store.ErrOwned, holder, time.UnixMilli(until).UTC().Format(time.RFC3339))
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// Renew extends leases to now+ttl and returns the ids of the runs that are no
// longer theirs.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration, now time.Time) ([]string, error) {
	var lost []string
	if len(leases) == 0 {
		return lost, nil
	}
	err := s.write(ctx, "renew leases", func(ctx context.Context) error {
		lost = nil
		for _, l := range leases {
			res, err := s.conn.ExecContext(ctx, "UPDATE run_row SET until = ? WHERE id = ? AND fence = ? AND owner = ?",
				now.Add(ttl).UnixMilli(), l.Run, l.Fence, l.Owner)
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

// Release gives a run back; a lease that is lost is nothing to give back.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	// The fence moves at once, so that a commit still on its way is refused.
	_, err := s.exec(ctx, "release run "+l.Run,
		"UPDATE run_row SET owner = NULL, until = 0, fence = fence + 1 WHERE id = ? AND fence = ? AND owner = ?",
		l.Run, l.Fence, l.Owner)
	return err
}

// Due lists at most limit runs that nobody owns and whose earliest timer is
// due at before, the longest due first.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return s.texts(ctx, "list due runs", `SELECT id FROM run
		WHERE due > 0 AND due <= ?1 AND (owner IS NULL OR until <= ?1) ORDER BY due, num LIMIT ?2`,
		before.UnixMilli(), limit)
}

// NextDue is the earliest timer later than after among runs that nobody owns
// then; zero for none.
func (s *Store) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	var next int64
	err := s.reader.QueryRowContext(ctx, `SELECT coalesce((SELECT due FROM run
		WHERE due > 0 AND due > ?1 AND (owner IS NULL OR until <= ?1) ORDER BY due LIMIT 1), 0)`,
		after.UnixMilli()).Scan(&next)
	if err != nil || next == 0 {
		return time.Time{}, s.wrap("find next timer", err)
	}
	return time.UnixMilli(next), nil
}

// Find lists the ids of at most 100 runs that begin with prefix, in
// alphabetical order.
func (s *Store) Find(ctx context.Context, prefix string) ([]string, error) {
	return s.texts(ctx, "find runs", `SELECT id FROM run
		WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 100`, prefix)
}

// texts runs a query of one text column.
func (s *Store) texts(ctx context.Context, op, query string, args ...any) ([]string, error) {
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
