package weir

import (
	"context"

	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory"
)

// TrajectoryOptions says how trajectories are stored.
type TrajectoryOptions struct {
	// Storage keeps a copy of each round when it ends, and whenever its run pauses:
	// files.New, tables.New, trajectory.Both; nil keeps none.
	Storage trajectory.Storage
	// Describer, if set, makes a model describe data that has no description, in the
	// background of the run that found or made the data and under its budget.
	Describer *runner.DescriptionOptions
}

// Trajectory returns the graph of what an agent did in a session and why; see
// history.Trajectories.Graph.
func (w *Weir) Trajectory(ctx context.Context, session string, sub int) (*trajectory.Graph, error) {
	return w.trajectories.Graph(ctx, session, sub)
}

// Agents lists the agents of a session, the main agent first. The session may be the id of
// a run, as for Trajectory.
func (w *Weir) Agents(ctx context.Context, session string) ([]trajectory.Agent, error) {
	return w.trajectories.Agents(ctx, session)
}

// KeepTrajectory stores the trajectory of a session or run in Options.Trajectories; see
// history.Trajectories.Keep.
func (w *Weir) KeepTrajectory(ctx context.Context, session string) error {
	return w.trajectories.Keep(ctx, session)
}

// newTrajectories returns the trajectories, and the options with which the runner records them.
func (w *Weir) newTrajectories(o *TrajectoryOptions) (*history.Trajectories, *runner.TrajectoryOptions) {
	describe := func(name string) string {
		if known := w.tools.Get(name); known != nil {
			return known.Description
		}
		return ""
	}
	r := &runner.TrajectoryOptions{All: o != nil}
	var storage trajectory.Storage
	if o != nil {
		storage, r.Descriptions = o.Storage, o.Describer
	}
	t := history.NewTrajectories(w.store, w.catalogue, describe, storage)
	r.Recorders = t.Recorders()
	return t, r
}
