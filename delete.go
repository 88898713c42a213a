package weir

import (
	"context"

	"github.com/weir-run/weir/store"
)

// DeleteUser permanently deletes all data of a user: sessions, runs, the forks that share their
// history, trajectories, and long-term memory. If Now is zero, the clock of the store is used.
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

// DeleteRun permanently deletes a run with its child runs and the forks that share their
// history. If Now is zero, the clock of the store is used. The error is store.ErrNotRoot for a
// round of a session and for a child run.
func (w *Weir) DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.store.DeleteRun(ctx, id, e)
	if err == nil && !e.DryRun {
		err = w.trajectories.Delete(ctx, append(gone.Forks, store.Tree{Run: id}))
	}
	return gone, err
}

// Compact removes the remains of deleted data that deletions with DeferCompaction have left in
// the files of the store, and reports whether there were any. Its cost grows with the size of
// the database.
func (w *Weir) Compact(ctx context.Context) (bool, error) {
	return w.store.Compact(ctx)
}

// PruneSessions permanently deletes the sessions that have expired and the sessions that p
// selects. If Now is zero, the clock of the store is used.
func (w *Weir) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	gone, err := w.store.PruneSessions(ctx, p)
	if err == nil && !p.DryRun && gone.Sessions > 0 {
		err = w.trajectories.DeleteUnused(ctx)
	}
	return gone, err
}
