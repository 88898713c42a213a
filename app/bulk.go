package app

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// BulkAction is what is done with several runs at once.
type BulkAction string

// The actions.
const (
	BulkCancel BulkAction = "cancel"
	BulkRetry  BulkAction = "retry" // the node that failed runs again
	BulkDelete BulkAction = "delete"
)

// BulkSelection are the runs that an action is for.
type BulkSelection struct {
	Runs []store.Run
	// Kept are runs that the filter selects and that the action cannot be for.
	Kept []KeptRun
	// More says that there are more than the most that was asked for.
	More bool
}

// KeptRun is a run on which a bulk action does not act, and why.
type KeptRun struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// bulkPage is how many runs are looked at in one query.
const bulkPage = 200

// SelectRuns finds the runs, at most so many, that a filter selects, that were created before
// a time, and that an action is for. A zero time selects all. Runs that the action does not
// concern, such as ended ones to cancel, are left out.
func (a *App) SelectRuns(ctx context.Context, action BulkAction, f store.Filter, before time.Time, most int) (*BulkSelection, error) {
	return a.selectRuns(ctx, action, f, func(r *store.Run) bool { return before.IsZero() || r.Created.Before(before) }, most)
}

// selectRuns finds runs that a filter and a function select.
func (a *App) selectRuns(ctx context.Context, action BulkAction, f store.Filter, selects func(r *store.Run) bool, most int) (*BulkSelection, error) {
	out := &BulkSelection{Kept: []KeptRun{}}
	f.Roots, f.Limit = true, bulkPage
	for {
		list, err := a.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range list {
			r := &list[i]
			if !selects(r) || !action.concerns(r) {
				continue
			}
			why, err := a.whyKept(ctx, action, r)
			switch {
			case err != nil:
				return nil, err
			case why != "":
				out.Kept = append(out.Kept, KeptRun{r.ID, why})
			case len(out.Runs) == most:
				out.More = true
				return out, nil
			default:
				out.Runs = append(out.Runs, *r)
			}
		}
		if len(list) < bulkPage {
			return out, nil
		}
		f.Before = list[len(list)-1].ID
	}
}

// concerns reports whether there is anything to do with a run of that status.
func (b BulkAction) concerns(r *store.Run) bool {
	switch b {
	case BulkCancel:
		return !r.Head.Status.Ended()
	case BulkRetry:
		return r.Head.Status == engine.Failed
	case BulkDelete:
		return true
	}
	return true
}

// whyKept says why an action is not for a run that it concerns, "" if it is.
func (a *App) whyKept(ctx context.Context, action BulkAction, r *store.Run) (string, error) {
	switch {
	case action == BulkRetry && (r.Head.Error == nil || r.Head.Error.Place() == ""):
		return "no node of it failed", nil
	case action != BulkDelete:
		return "", nil
	case r.Session != "":
		return "it is a round of session " + r.Session + " and is deleted with it", nil
	case !r.Head.Status.Ended():
		return "it has not ended", nil
	}
	plan, err := a.DeleteRun(ctx, r.ID, store.DeleteOptions{DryRun: true})
	if err != nil {
		return err.Error(), context.Cause(ctx)
	}
	if len(plan.Forks) > 0 {
		return "runs or sessions share its past", nil
	}
	return "", nil
}

// ActOn carries out an action on a run of a selection. The run is nil unless it continues in
// this process. After deletions, Compact removes what they left.
func (a *App) ActOn(ctx context.Context, action BulkAction, r *store.Run, by string) (*weir.Run, error) {
	switch action {
	case BulkCancel:
		return a.Cancel(ctx, r.ID, by, "several runs were cancelled")
	case BulkRetry:
		return a.OverrideNode(ctx, r.ID, "retry", r.Head.Error.Place(), nil, by)
	case BulkDelete:
		_, err := a.DeleteRun(ctx, r.ID, store.DeleteOptions{DeferCompaction: true})
		return nil, err
	}
	return nil, fmt.Errorf("there is no action %q", action)
}
