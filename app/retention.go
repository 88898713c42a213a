package app

import (
	"context"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// SelectOldRuns finds the runs, at most so many, that have ended with one of the statuses of a filter, that nothing has changed
// since a time, and that can be deleted. Kept are those that cannot, because something else shares their past.
// Without a status it selects all runs that have ended.
func (a *App) SelectOldRuns(ctx context.Context, f store.Filter, before time.Time, most int) (*BulkSelection, error) {
	if len(f.Status) == 0 {
		f.Status = []engine.Status{engine.Completed, engine.Failed, engine.Cancelled}
	}
	return a.selectRuns(ctx, BulkDelete, f, func(r *store.Run) bool {
		return r.Session == "" && r.Head.Status.Ended() && r.Updated.Before(before)
	}, most)
}
