package weir

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// deleteRecords calls a deletion of the store, and has the runner forget the runs that go with it: before, so that a
// deletion that ends in the middle can be repeated, and after, for what other processes have woken meanwhile. A run
// whose workflow is gone and whose deletion is refused is started again by a worker.
func (w *Weir) deleteRecords(ctx context.Context, o store.DeleteOptions, do func(o store.DeleteOptions) (store.DeleteResult, error)) (store.DeleteResult, error) {
	dry := o
	dry.DryRun = true
	plan, err := do(dry)
	if err != nil {
		return plan, err
	}
	elsewhere, err := w.runsElsewhere(ctx, plan.RootRuns)
	if err != nil {
		return plan, err
	}
	if len(elsewhere) > 0 && !o.Force {
		return store.DeleteResult{}, elsewhere[0]
	}
	if o.DryRun {
		plan.Remains = joinRemains(plan.Remains, remainsElsewhere(elsewhere))
		return plan, nil
	}
	if err := w.forget(ctx, plan.RootRuns); err != nil {
		return store.DeleteResult{}, fmt.Errorf("nothing was deleted from the store: %w", err)
	}
	gone, err := do(o)
	gone.Remains = joinRemains(gone.Remains, remainsElsewhere(elsewhere))
	if err == nil {
		err = w.forget(context.WithoutCancel(ctx), gone.RootRuns)
	}
	return gone, err
}

// forget has the runner delete what it keeps about runs.
func (w *Weir) forget(ctx context.Context, runs []string) error {
	if w.runner == nil || len(runs) == 0 {
		return nil
	}
	return w.runner.Forget(ctx, runs)
}

// runsElsewhere returns those of some runs that belong to a runner that this process does not reach.
func (w *Weir) runsElsewhere(ctx context.Context, runs []string) (out []*runner.OtherRunner, err error) {
	for _, id := range runs {
		name, err := w.local.RunnerOf(ctx, id)
		if err != nil {
			return nil, err
		}
		if name != "" && (w.runner == nil || w.runner.Name() != name) {
			out = append(out, &runner.OtherRunner{Run: id, Runner: name, Here: w.runnerName()})
		}
	}
	return out, nil
}

// runnerName is the name of the runner with which this process works, "" for the local one.
func (w *Weir) runnerName() string {
	if w.runner == nil {
		return ""
	}
	return w.runner.Name()
}

// remainsElsewhere says where parts of deleted runs remain.
func remainsElsewhere(runs []*runner.OtherRunner) string {
	if len(runs) == 0 {
		return ""
	}
	return fmt.Sprintf("what the runner %s keeps about %d of the runs, such as %s", runs[0].Runner, len(runs), runs[0].Run)
}

func joinRemains(list ...string) string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// DeleteRun permanently deletes a run with its child runs and the forks that share their
// history, and what the runner keeps about them. If Now is zero, the clock of the store is used. The error is
// store.ErrNotRoot for a round of a session and for a child run, and runner.ErrOtherRunner for a run of a runner that this
// process does not reach, unless Force is set.
func (w *Weir) DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.deleteRecords(ctx, e, func(e store.DeleteOptions) (store.DeleteResult, error) { return w.store.DeleteRun(ctx, id, e) })
	if err == nil && !e.DryRun {
		err = w.trajectories.Delete(ctx, append(gone.Forks, store.Tree{Run: id}))
	}
	return gone, err
}

// DeleteSession is Session.Delete by id. A zero Now means the present.
func (w *Weir) DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	return w.sessions.Delete(ctx, id, e)
}

// DeleteUser permanently deletes all data of a user: sessions, runs, the forks that share their
// history, trajectories, long-term memory, and what the runner keeps about these runs. If Now is zero, the clock of
// the store is used. Runs of other runners are treated as by DeleteRun.
func (w *Weir) DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.deleteRecords(ctx, e, func(e store.DeleteOptions) (store.DeleteResult, error) { return w.store.DeleteUser(ctx, user, e) })
	if err == nil && !e.DryRun {
		err = errors.Join(w.trajectories.DeleteUser(ctx, user), w.trajectories.Delete(ctx, gone.Forks))
	}
	return gone, err
}

// PruneSessions permanently deletes the sessions that have expired and the sessions that p
// selects. If Now is zero, the clock of the store is used. Runs of other runners are treated as by DeleteRun.
func (w *Weir) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	gone, err := w.deleteRecords(ctx, store.DeleteOptions{Now: p.Now, DryRun: p.DryRun}, func(o store.DeleteOptions) (store.DeleteResult, error) {
		which := p
		which.DryRun = o.DryRun
		return w.store.PruneSessions(ctx, which)
	})
	if err == nil && !p.DryRun && gone.Sessions > 0 {
		err = w.trajectories.DeleteUnused(ctx)
	}
	return gone, err
}
