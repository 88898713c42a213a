package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Acquire implements store.Leases.
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, "", owner, ttl)
}

// Seize implements store.Leases.
func (s *Store) Seize(ctx context.Context, id, from, owner string, ttl time.Duration) (store.Lease, error) {
	return s.acquire(ctx, id, from, owner, ttl)
}

func (s *Store) acquire(ctx context.Context, id, from, owner string, ttl time.Duration) (store.Lease, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return store.Lease{}, fmt.Errorf("acquire: %w", err)
	}
	now := s.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	another := r.row.Owner != "" && r.row.Owner != owner
	if another && r.row.Owner != from && r.row.Until.After(now) {
		return store.Lease{}, fmt.Errorf("acquire run %s: %w: %s has it until %s",
			id, store.ErrOwned, r.row.Owner, r.row.Until.UTC().Format(time.RFC3339))
	}
	if r.row.Owner != owner {
		r.fence++
	}
	takenOver := another && r.row.Head.Status == engine.Running && r.row.Head.Activity == engine.Executing
	if takenOver {
		r.row.Crashes++
	}
	r.row.Owner, r.row.Until = owner, now.Add(ttl)
	return store.Lease{Run: id, Owner: owner, Fence: r.fence, Until: r.row.Until, Crashes: r.row.Crashes, TakenOver: takenOver}, nil
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	var lost []string
	until := s.clock().Add(ttl)
	for _, l := range leases {
		r, err := s.run(ctx, l.Run)
		if err != nil || !r.renew(l, until) {
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

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	r, err := s.run(ctx, l.Run)
	if err != nil {
		return nil // a deleted run has no lease
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds(l) {
		r.release()
	}
	return nil
}

// release ends the ownership of the run. The fence grows at once, so that a commit in flight is refused.
func (r *run) release() {
	r.fence++
	r.row.Owner, r.row.Until = "", time.Time{}
}

// NextDue implements store.RecoveryStore.
func (s *Store) NextDue(ctx context.Context) (time.Duration, bool, error) {
	now, next := s.clock(), int64(0)
	err := s.visitUnowned(ctx, now, func(row *store.Run) {
		if at := row.Head.Due; at > now.UnixMilli() && (next == 0 || at < next) {
			next = at
		}
	})
	if err != nil || next == 0 {
		return 0, false, err
	}
	return time.UnixMilli(next).Sub(now), true, nil
}

// Unfinished implements store.RecoveryStore.
func (s *Store) Unfinished(ctx context.Context, except string, after int64, limit int) ([]store.Unfinished, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.inboxMu.Lock()
	posted := make(map[string]bool, len(s.inbox))
	for i := range s.inbox {
		posted[s.inbox[i].Run] = true
	}
	s.inboxMu.Unlock()
	s.mu.RLock()
	order := s.order
	s.mu.RUnlock()
	now := s.clock()
	out := []store.Unfinished{}
	for _, r := range order {
		row := r.copy()
		u := store.Unfinished{
			Number: int64(r.number) + 1, Run: row.ID, Parent: row.Parent, Session: row.Session, Status: row.Head.Status,
			Activity: row.Head.Activity, Due: row.Head.Due, Posts: posted[row.ID], Owner: row.Owner, Expired: row.Owner != "" && !row.Until.After(now), Crashes: row.Crashes,
		}
		switch {
		case len(out) == limit:
			return out, nil
		case u.Number <= after, except != "" && u.Owner == except:
		case isUnfinished(&u, now):
			out = append(out, u)
		}
	}
	return out, nil
}

func isUnfinished(u *store.Unfinished, now time.Time) bool {
	switch u.Status {
	case engine.Running:
		return u.Activity < engine.AwaitsTimers || u.Posts || u.Due > 0 && u.Due <= now.UnixMilli()
	case engine.Pending:
		return u.Session != "" || u.Posts
	case engine.Paused:
		return u.Posts || u.Due > 0 && u.Due <= now.UnixMilli()
	default:
		return false
	}
}

// PendingSessions implements store.SessionStore.
func (s *Store) PendingSessions(ctx context.Context, after string, limit int) ([]string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.sessions.mu.Lock()
	found := map[string]bool{}
	for _, q := range s.sessions.queue {
		found[q.Session] = true
	}
	s.sessions.mu.Unlock()
	s.mu.RLock()
	order := s.order
	s.mu.RUnlock()
	for _, r := range order {
		if row := r.copy(); row.Session != "" && row.Head.Status == engine.Pending {
			found[row.Session] = true
		}
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(id string) bool { return id <= after })
	return ids[:min(len(ids), limit)], nil
}

// visitUnowned visits the runs without an owner at a time.
func (s *Store) visitUnowned(ctx context.Context, at time.Time, visit func(row *store.Run)) error {
	if err := s.checkOpen(ctx); err != nil {
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
