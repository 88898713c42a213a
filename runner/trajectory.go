package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/follow"
)

// TrajectoryOptions say how the trajectories of runs are recorded during the runs.
type TrajectoryOptions struct {
	// Recorders hands out the recorders and keeps the rounds.
	Recorders *trajectory.RecorderPool
	// All run is followed; else only one whose node adds to its trajectory by hand.
	All bool
	// Descriptions describes data that nothing describes, in runs that are followed; nil
	// does not.
	Descriptions *DescriptionOptions
}

// recordTrajectory reads a durable commit into the run's trajectory, where it is followed.
func (x *Execution) recordTrajectory(c engine.Commit) {
	if t := x.local.o.Trajectories; t != nil && (t.All || x.follower != nil) && !x.trajectoryLost {
		x.recordCommit(c) // a function of its own, so that a commit without a follower stays on the stack
	}
}

// recordCommit reads a commit. A trajectory that cannot be kept is logged and
// holds up nothing.
func (x *Execution) recordCommit(c engine.Commit) {
	if x.follower == nil {
		if err := x.openTrajectory(c.Seq - 1); err != nil {
			x.trajectoryLost = true
			x.local.o.Logger.Error("the trajectory of a run is not kept", "run", x.ID, "error", err)
			return
		}
	}
	x.follower.Commit(context.WithoutCancel(x.local.ctx), &c) // also what is committed as the process ends
	x.describeData()
}

// openTrajectory begins to follow the run: its commits up to seq are read again. It is
// called on the run's goroutine.
func (x *Execution) openTrajectory(seq int64) error {
	ctx := context.WithoutCancel(x.local.ctx)
	k, above, agents, err := x.local.trajectoryKey(ctx, x.ID, x.m.run.Start)
	if err != nil {
		return err
	}
	f, err := follow.New(ctx, follow.Options{
		Flow: x.m.program.Flow, Run: x.ID, Types: x.m.program.types, Recorders: x.local.o.Trajectories.Recorders,
		Key: k, RootPath: above, Agents: agents, Describe: x.toolDescription,
	})
	if err != nil {
		return err
	}
	for c, err := range x.local.store.Commits(ctx, x.ID, 0) {
		if err != nil {
			return errors.Join(err, f.Close(ctx))
		}
		if c.Seq > seq {
			break
		}
		f.Commit(ctx, &c)
	}
	x.follower = f
	return nil
}

// trajectoryKey returns where the trajectory of a run goes: the round of the run at the root of
// its tree, and the sub-agent that it is there.
func (l *Local) trajectoryKey(ctx context.Context, run string, start *engine.RunStarted) (trajectory.Key, string, *follow.Agents, error) {
	line := []*engine.RunStarted{start}
	for start.Parent != "" {
		run = start.Parent
		s, err := JournaledStart(ctx, l.store, run)
		if err != nil {
			return trajectory.Key{}, "", nil, err
		}
		start = s
		line = append(line, s)
	}
	agents := follow.NewAgents(start.Agents)
	k := trajectory.Key{User: start.User, Session: start.Session, Round: start.Round}
	if k.Session == "" {
		k.Session, k.Round = run, 1
	}
	above := ""
	for _, s := range slices.Backward(line[:len(line)-1]) {
		above = follow.ChildPath(above, s)
	}
	if above != "" {
		k.Sub = agents.Number(above)
	}
	return k, above, agents, nil
}

// toolDescription returns what a tool of this process does.
func (x *Execution) toolDescription(name string) string {
	if t := x.m.services.Tools.Get(name); t != nil {
		return t.Description
	}
	return ""
}

// closeTrajectory saves the run's trajectory and lets go of it.
func (x *Execution) closeTrajectory(ctx context.Context) {
	switch {
	case x.follower == nil:
		return
	case errors.Is(x.err, store.ErrFenced): // another process has the run, and keeps it
		if err := x.follower.CloseUnsaved(ctx); err != nil {
			x.local.o.Logger.Error("the trajectory of a run is not let go of", "run", x.ID, "error", err)
		}
		return
	}
	x.follower.RecordUnfinished(ctx)
	if err := errors.Join(x.follower.Err(), x.follower.Close(ctx)); err != nil {
		x.local.o.Logger.Error("the trajectory of a run is not whole", "run", x.ID, "error", err)
	}
}

// trajectorySource is the attempt I/O of a run that has a trajectory.
type trajectorySource interface {
	// trajectoryFollower returns the run's follower, made where there was none.
	trajectoryFollower(a *attempt) (*follow.Follower, error)
}

func (x *Execution) trajectoryFollower(a *attempt) (*follow.Follower, error) {
	var err error
	open := func(*engine.Run) (engine.Event, error) {
		switch {
		case x.local.o.Trajectories == nil:
			err = node.ErrNoTrajectory
		case x.follower == nil:
			err = x.openTrajectory(x.m.seq)
		}
		return nil, nil
	}
	if a.cancel == nil { // on the run's own goroutine
		_, _ = open(nil)
		return x.follower, err
	}
	select {
	case failed := <-x.command(open):
		return x.follower, errors.Join(failed, err)
	case <-x.done:
		return nil, ErrEnded
	}
}

// Declare implements node.Recordings.
func (a *attempt) Declare(artifact trajectory.Artifact) error {
	v, err := artifact.Value()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key, err := a.noteKey(follow.NoteArtifact, v)
	if err != nil {
		return err
	}
	if a.inspection == nil && !slices.Contains(a.steps, key) {
		a.steps = append(a.steps, key)
		a.pending = append(a.pending, &engine.NoteRecorded{Path: a.Path, Key: key, Value: v})
	}
	return nil
}

// Trace implements node.Recordings.
func (a *attempt) Trace(op trajectory.Operation) (trajectory.ID, error) {
	d, ok := a.io.(trajectorySource)
	if !ok || a.inspection != nil {
		return "", node.ErrNoTrajectory
	}
	v, err := engine.Normalize(op)
	if err != nil {
		return "", err
	}
	f, err := d.trajectoryFollower(a)
	if err != nil {
		return "", err
	}
	key, err := a.recordOperation(v)
	if err != nil {
		return "", err
	}
	made, ok := f.NoteResult(key)
	if !ok {
		return "", fmt.Errorf("the trajectory of run %s does not have what %s added", a.ctx.Info().Run, key)
	}
	return made.ID, made.Err
}

// recordOperation makes an operation durable, unless it is.
func (a *attempt) recordOperation(v engine.Value) (key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key, err = a.noteKey(follow.NoteTrajectory, v); err != nil || slices.Contains(a.steps, key) {
		return key, err
	}
	events := append(a.pending, &engine.NoteRecorded{Path: a.Path, Key: key, Value: v})
	a.pending = nil
	if err := a.io.flush(a, events); err != nil {
		return key, err
	}
	a.steps = append(a.steps, key)
	return key, nil
}

// noteKey identifies a note among those of the attempt: an attempt that says
// something else at the same place makes another note. a.mu is held.
func (a *attempt) noteKey(kind string, v engine.Value) (string, error) {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return a.Path + "/" + kind + "#" + strconv.Itoa(a.ordinal("/"+kind)) + "." + hex.EncodeToString(sum[:4]), nil
}
