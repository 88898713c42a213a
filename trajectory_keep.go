package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
)

// trails say how the runner fills trajectories.
func (w *Weir) trails(o *Trajectories) *runner.Trails {
	kept := &kept{w: w}
	t := &runner.Trails{Every: o != nil}
	if o != nil {
		kept.Storage, t.Portraits, w.trajectories = o.Storage, o.Portraits, o.Storage
	}
	t.Book = trajectory.NewBook(kept, nil)
	return t
}

// kept is a storage that makes of the journal what another does not have, so that a
// round always goes on with the numbers of the one before it.
type kept struct {
	trajectory.Storage // nil keeps nothing
	w                  *Weir
}

// Save saves a round where there is a storage.
func (k *kept) Save(ctx context.Context, r trajectory.Record) error {
	if k.Storage == nil {
		return nil
	}
	return k.Storage.Save(ctx, r)
}

// Near is the round before the key's, where the session has one, and none after.
func (k *kept) Near(ctx context.Context, key trajectory.Key) (before, after int, err error) {
	if k.Storage != nil {
		before, after, err = k.Storage.Near(ctx, key)
		if err != nil || before == key.Round-1 {
			return before, after, err
		}
		main := key
		main.Sub = 0
		if last, _, err := k.Storage.Near(ctx, main); err != nil || last == key.Round-1 {
			return before, after, err
		}
	}
	if key.Round == 1 {
		return 0, 0, nil
	}
	records, err := k.made(ctx, key)
	for _, r := range records {
		if r.Sub == key.Sub && r.Round < key.Round {
			before = max(before, r.Round)
		}
	}
	return before, after, err
}

// Load reads a round, or makes it of the journal.
func (k *kept) Load(ctx context.Context, key trajectory.Key) (trajectory.Record, error) {
	if k.Storage != nil {
		r, err := k.Storage.Load(ctx, key)
		if err == nil || !errors.Is(err, trajectory.ErrNotFound) {
			return r, err
		}
	}
	next := key
	next.Round++
	records, err := k.made(ctx, next)
	for _, r := range records {
		if r.Key == key {
			return r, nil
		}
	}
	return trajectory.Record{}, cmp.Or(err, fmt.Errorf("%s: %w", key, trajectory.ErrNotFound))
}

// made are the rounds of a session before that of the key.
func (k *kept) made(ctx context.Context, key trajectory.Key) ([]trajectory.Record, error) {
	t := k.w.newTrails()
	t.most = key.Round - 1
	if t.most < 1 {
		return nil, nil
	}
	if _, err := k.w.store.Session(ctx, key.Session); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	if err := t.session(ctx, key.Session); err != nil {
		return nil, err
	}
	return t.records(), nil
}

// forget deletes what the storage has of sessions and runs that are deleted.
func (w *Weir) forget(ctx context.Context, gone []store.Tree) error {
	if w.trajectories == nil {
		return nil
	}
	for _, t := range gone {
		id := cmp.Or(t.Session, t.Run)
		if _, err := w.trajectories.Delete(ctx, trajectory.Filter{Session: &id}); err != nil {
			return fmt.Errorf("delete the trajectory of %s: %w", id, err)
		}
	}
	return nil
}

// forgetOrphans deletes what the storage has of sessions and runs that are not there
// any more.
func (w *Weir) forgetOrphans(ctx context.Context) error {
	if w.trajectories == nil {
		return nil
	}
	keys, err := w.trajectories.List(ctx, trajectory.Filter{})
	if err != nil {
		return err
	}
	for i, k := range keys {
		if i > 0 && keys[i-1].Session == k.Session && keys[i-1].User == k.User {
			continue
		}
		_, ofSession := w.store.Session(ctx, k.Session)
		_, ofRun := w.store.Run(ctx, k.Session)
		if !errors.Is(ofSession, store.ErrNotFound) || !errors.Is(ofRun, store.ErrNotFound) {
			continue
		}
		if err := w.forget(ctx, []store.Tree{{Session: k.Session}}); err != nil {
			return err
		}
	}
	return nil
}
