package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// Acquire gives a run to owner for ttl; see store.Leases.
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, "", owner, ttl)
}

// Seize is Acquire from an owner that is known to be dead; see store.Leases.
func (s *Store) Seize(ctx context.Context, id, from, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, from, owner, ttl)
}

func (s *Store) acquire(ctx context.Context, id, from, owner string, ttl time.Duration) (l store.Lease, err error) {
	err = s.write(ctx, "acquire run "+id, func(t *tx) error {
		var r runState
		var until int64
		row := rowPrefix{&until}
		err := t.query(func(pr pgx.Row) error { return r.scan(row.of(pr)) },
			"SELECT r.until, "+runColumns+" FROM run r WHERE r.id = $1 FOR UPDATE", text(id))
		if err == nil && r.num == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		another := r.owner != "" && r.owner != owner
		if another && r.owner != from && until > t.now {
			return fmt.Errorf("%w: %s has it until %s", store.ErrOwned, r.owner, time.UnixMilli(until).UTC().Format(time.RFC3339))
		}
		if r.owner != owner {
			r.fence++
		}
		takenOver := another && r.isExecuting()
		if takenOver {
			r.crashes++
		}
		if another {
			t.queue("DELETE FROM live_text WHERE run = $1", r.num)
		}
		until = t.now + ttl.Milliseconds()
		l = store.Lease{Run: id, Owner: owner, Fence: r.fence, Until: time.UnixMilli(until), Crashes: r.crashes, TakenOver: takenOver}
		t.queue("UPDATE run SET fence = $2, owner = $3, until = $4, crashes = $5 WHERE num = $1", r.num, r.fence, text(owner), until, r.crashes)
		return nil
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// rowPrefix scans the first column of a row into a variable, and leaves the others to a
// scan of its own.
type rowPrefix struct{ first any }

func (p rowPrefix) of(row pgx.Row) pgx.Row { return prefixedRow{p.first, row} }

type prefixedRow struct {
	first any
	row   pgx.Row
}

// Scan implements pgx.Row.
func (p prefixedRow) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

// Renew extends leases; see store.Leases.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) (lost []string, err error) {
	if len(leases) == 0 {
		return nil, s.check(ctx)
	}
	sorted := slices.SortedFunc(slices.Values(leases), func(a, b store.Lease) int { return strings.Compare(a.Run, b.Run) })
	var ids, owners []string
	var fences []int64
	for i := range sorted {
		ids, owners, fences = append(ids, escapeText(sorted[i].Run)), append(owners, escapeText(sorted[i].Owner)), append(fences, sorted[i].Fence)
	}
	renewed := map[string]bool{}
	err = s.write(ctx, "renew leases", func(t *tx) error {
		clear(renewed)
		return t.query(func(row pgx.Row) error {
			var id text
			err := row.Scan(&id)
			renewed[string(id)] = true
			return err
		}, `WITH l AS (SELECT r.num FROM run r JOIN unnest($1::text[], $2::text[], $3::bigint[]) AS l (id, owner, fence)
				ON r.id = l.id AND r.owner = l.owner AND r.fence = l.fence ORDER BY r.id FOR UPDATE OF r)
			UPDATE run r SET until = coalesce($4::bigint, weir_now()) + $5 FROM l WHERE r.num = l.num RETURNING r.id`,
			ids, owners, fences, s.nowArg(), ttl.Milliseconds())
	})
	if err != nil {
		return nil, err
	}
	for i := range leases {
		if !renewed[leases[i].Run] {
			lost = append(lost, leases[i].Run)
		}
	}
	return lost, nil
}

// Release ends a lease; see store.Leases.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	// The fence grows at once, so that a commit that is still on its way is refused.
	_, err := s.exec(ctx, "release run "+l.Run, "UPDATE run SET owner = '', until = 0, fence = fence + 1 WHERE id = $1 AND fence = $2 AND owner = $3",
		text(l.Run), l.Fence, text(l.Owner))
	return err
}

// NextDue returns in how long the next timer is due; see store.RecoveryStore.
func (s *Store) NextDue(ctx context.Context) (time.Duration, bool, error) {
	var next, now int64
	err := s.queryRow(ctx, []any{&next, &now}, `WITH n AS (SELECT coalesce($1::bigint, weir_now()) AS now)
		SELECT coalesce((SELECT due FROM run WHERE due > 0 AND due > n.now AND (owner = '' OR until <= n.now) ORDER BY due LIMIT 1), 0), n.now FROM n`, s.nowArg())
	if err != nil || next == 0 {
		return 0, false, s.wrap("find next timer", err)
	}
	return time.Duration(next-now) * time.Millisecond, true, nil
}

// Unfinished returns runs that a process should be executing; see store.RecoveryStore. A run
// whose transaction ends later than one with a higher number is found by the next sweep.
func (s *Store) Unfinished(ctx context.Context, except string, after int64, limit int) ([]store.Unfinished, error) {
	out := []store.Unfinished{}
	err := s.query(ctx, func(row pgx.Row) error {
		var u store.Unfinished
		var status string
		var activity int16
		err := row.Scan(&u.Number, into(&u.Run), into(&u.Parent), into(&u.Session), &status, &activity, &u.Due, &u.Posts, into(&u.Owner), &u.Expired, &u.Crashes)
		if err != nil {
			return err
		}
		u.Activity = activityOf(activity)
		u.Status, err = parseStatus(status)
		out = append(out, u)
		return err
	}, `WITH n AS (SELECT coalesce($1::bigint, weir_now()) AS now)
		SELECT r.num, r.id, r.parent, coalesce(s.id, ''), r.status, r.activity, r.due,
			EXISTS (SELECT 1 FROM inbox i WHERE i.run = r.num), r.owner, r.owner <> '' AND r.until <= n.now, r.crashes
		FROM n CROSS JOIN run r LEFT JOIN session s ON s.num = r.session
		WHERE r.num IN (
			SELECT num FROM run WHERE status IN ('running', 'pending') AND activity < 2 AND (status = 'running' OR session IS NOT NULL)
			UNION SELECT num FROM run WHERE due > 0 AND due <= (SELECT now FROM n)
			UNION SELECT run FROM inbox)
		AND ($2 = '' OR r.owner <> $2) AND r.num > $3 AND r.status IN ('running', 'pending', 'paused')
		ORDER BY r.num LIMIT $4`, s.nowArg(), text(except), after, limit)
	if err != nil {
		return nil, s.wrap("list unfinished runs", err)
	}
	return out, nil
}
