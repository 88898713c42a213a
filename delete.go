package weir

import (
	"context"

	"github.com/weir-run/weir/store"
)

// DeleteUser deletes for good all that is kept of a user: sessions, runs, the forks that
// share their past, trajectories, and long-term memory. A zero Now means the present time of the store.
func (w *Weir) DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.store.DeleteUser(ctx, user, e)
	if err == nil && !e.DryRun {
		err = w.trajectories.DeleteUser(ctx, user)
	}
	if err == nil && !e.DryRun {
		err = w.trajectories.Delete(ctx, gone.Forks)
	}
	return gone, err
}

// DeleteRun deletes for good a run with its child runs and the forks that share their past. A zero
// Now means the present time of the store. The error is store.ErrNotRoot for a round of a
// session and for a child run.
func (w *Weir) DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.store.DeleteRun(ctx, id, e)
	if err == nil && !e.DryRun {
		err = w.trajectories.Delete(ctx, append(gone.Forks, store.Tree{Run: id}))
	}
	return gone, err
}

// Compact removes the parts of deleted data that deletions with DeferCompaction have left
// in the store's files, and reports whether there were any. Its cost depends on the size of
// the whole database.
func (w *Weir) Compact(ctx context.Context) (bool, error) {
	return w.store.Compact(ctx)
}

// PruneSessions deletes for good the sessions that have expired, and others that p
// selects. A zero Now means the present time of the store.
func (w *Weir) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	gone, err := w.store.PruneSessions(ctx, p)
	if err == nil && !p.DryRun && gone.Sessions > 0 {
		err = w.trajectories.DeleteUnused(ctx)
	}
	return gone, err
}
