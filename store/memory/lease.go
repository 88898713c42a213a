package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/store"
)

// Acquire gives owner the run until now+ttl, under a fence that is new unless
// owner has the run already. store.ErrOwned where another's lease has not run
// out, store.ErrNotFound where there is no such run.
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration, now time.Time) (store.Lease, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return store.Lease{}, fmt.Errorf("acquire: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.row.Owner != "" && r.row.Owner != owner && r.row.Until.After(now) {
		return store.Lease{}, fmt.Errorf("acquire run %s: %w: %s has it until %s",
			id, store.ErrOwned, r.row.Owner, r.row.Until.UTC().Format(time.RFC3339))
	}
	if r.row.Owner != owner {
		r.fence++
	}
	r.row.Owner, r.row.Until = owner, now.Add(ttl)
	return store.Lease{Run: id, Owner: owner, Fence: r.fence, Until: r.row.Until}, nil
}

// Renew extends leases to now+ttl and returns the ids of the runs that are no
// longer theirs.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration, now time.Time) ([]string, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var lost []string
	for _, l := range leases {
		r, err := s.run(ctx, l.Run)
		if err != nil || !r.renew(l, now.Add(ttl)) {
			lost = append(lost, l.Run)
		}
	}
	return lost, nil
}

func (r *run) renew(l store.Lease, until time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.holds(l) {
		return false
	}
	r.row.Until = until
	return true
}

func (r *run) holds(l store.Lease) bool { return r.fence == l.Fence && r.row.Owner == l.Owner }

// Release gives a run back; a lease that is lost is nothing to give back.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	r, err := s.run(ctx, l.Run)
	if err != nil {
		return nil // a run that is gone has no lease to give back
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds(l) {
		r.leave()
	}
	return nil
}

// leave has nobody own the run. The fence moves at once, so that a commit still
// on its way is refused.
func (r *run) leave() {
	r.fence++
	r.row.Owner, r.row.Until = "", time.Time{}
}

// Due lists at most limit runs that nobody owns and whose earliest timer is
// due at before, the longest due first.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]string, error) {
	type due struct {
		id string
		at int64
	}
	var all []due
	err := s.unowned(ctx, before, func(row *store.Run) {
		if at := row.Head.Due; at > 0 && at <= before.UnixMilli() {
			all = append(all, due{row.ID, at})
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	ids := []string{}
	for _, d := range all[:min(len(all), limit)] {
		ids = append(ids, d.id)
	}
	return ids, nil
}

// NextDue is the earliest timer later than after among runs that nobody owns
// then; zero for none.
func (s *Store) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	var next int64
	err := s.unowned(ctx, after, func(row *store.Run) {
		if at := row.Head.Due; at > after.UnixMilli() && (next == 0 || at < next) {
			next = at
		}
	})
	if err != nil || next == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(next), nil
}

// unowned visits the runs that nobody owns at a time.
func (s *Store) unowned(ctx context.Context, at time.Time, visit func(row *store.Run)) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	order := s.order
	s.mu.RUnlock()
	for _, r := range order {
		if row := r.copy(); row.Owner == "" || !row.Until.After(at) {
			visit(&row)
		}
	}
	return nil
}
