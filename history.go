package weir

import (
	"context"
	"iter"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/node/codegen/learned"
	"github.com/weir-run/weir/otel"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory"
)

// Inspect returns a run as it was after event number at; 0 means the latest event. It executes
// nothing and needs no lease and no node types.
func (w *Weir) Inspect(ctx context.Context, id string, at int64) (*runner.RunView, error) {
	return w.history.Inspect(ctx, id, at)
}

// InspectPrompts returns the model calls of a node's newest attempt: the messages of each, what
// was omitted, and why; see history.Reader.InspectPrompts.
func (w *Weir) InspectPrompts(ctx context.Context, id, path string) ([]runner.ModelCall, error) {
	return w.history.InspectPrompts(ctx, id, path)
}

// Chain yields the chain of work of a run: each attempt of a node when it has ended, and
// finally the attempts that have not ended. The values of the state are not copied.
func (w *Weir) Chain(ctx context.Context, id string) iter.Seq2[history.Work, error] {
	return w.history.Chain(ctx, id)
}

// Diff compares two runs in their present state. It reads both journals in full.
func (w *Weir) Diff(ctx context.Context, a, b string) (*history.Diff, error) {
	return w.history.Diff(ctx, a, b)
}

// LearnedCode gives access to the programs that models wrote for code nodes and that the store
// keeps for later runs: they can be listed, disabled, enabled and deleted.
func (w *Weir) LearnedCode() *learned.Library { return learned.New(w.store) }

// recordedPrograms implements history.Programs.
type recordedPrograms struct{ w *Weir }

// Recorded implements history.Programs.
func (r recordedPrograms) Recorded(ctx context.Context, run string) (*runner.Program, error) {
	return r.w.programForReading(ctx, run)
}

// Executable implements history.Programs.
func (r recordedPrograms) Executable(ctx context.Context, run string) (*runner.Program, error) {
	return r.w.programOf(ctx, run)
}

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

// openTraces starts the exporter of traces, and passes it the runs that end or pause.
func (w *Weir) openTraces(c *otel.Config, ro *runner.Options) (err error) {
	if c == nil {
		return nil
	}
	if w.traces, err = otel.NewExporter(*c, w.store, w.logger); err != nil {
		return err
	}
	ro.Rested = func(run string, f *flow.Flow, after int64) {
		w.traces.Rested(otel.Rest{Run: run, Flow: f, After: after})
	}
	return nil
}

// Trace returns the spans of a run and of the runs below it that have ended so far; contents
// is otel.Config.Contents. A run that waits lacks the spans of itself and of what waits.
func (w *Weir) Trace(ctx context.Context, run string, contents bool) ([]otel.Span, error) {
	flowOf := func(ctx context.Context, run string) (*flow.Flow, error) {
		p, err := w.programForReading(ctx, run)
		if err != nil {
			return nil, err
		}
		return p.Flow, nil
	}
	return otel.Tree(ctx, w.store, run, flowOf, contents)
}
