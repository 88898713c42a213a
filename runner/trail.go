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

// Trails say how the trajectories of runs are filled while they go on.
type Trails struct {
	// Book hands out the recorders and keeps the rounds.
	Book *trajectory.Book
	// Every run is followed; else only one whose node adds to its trajectory by hand.
	Every bool
	// Portraits describes data that nothing describes, in runs that are followed; nil
	// does not.
	Portraits *Portraits
}

// follow reads a durable commit into the run's trajectory, where it is followed.
func (x *Execution) follow(c engine.Commit) {
	if t := x.local.o.Trails; t != nil && (t.Every || x.trail != nil) && !x.trailed {
		x.followed(c) // apart, so that a commit that nobody follows stays on the stack
	}
}

// followed reads a commit. A trajectory that cannot be kept is told to the logger and
// holds up nothing.
func (x *Execution) followed(c engine.Commit) {
	if x.trail == nil {
		if err := x.openTrail(c.Seq - 1); err != nil {
			x.trailed = true
			x.local.o.Logger.Error("the trajectory of a run is not kept", "run", x.ID, "error", err)
			return
		}
	}
	x.trail.Commit(context.WithoutCancel(x.local.ctx), &c) // also what is committed as the process ends
	x.portray()
}

// openTrail begins to follow the run: its commits up to seq are read again. It is
// called on the run's goroutine.
func (x *Execution) openTrail(seq int64) error {
	ctx := context.WithoutCancel(x.local.ctx)
	k, above, agents, err := x.local.place(ctx, x.ID, x.m.run.Start)
	if err != nil {
		return err
	}
	f, err := follow.New(ctx, follow.Options{
		Flow: x.m.program.Flow, Run: x.ID, Types: x.m.program.types, Book: x.local.o.Trails.Book,
		Key: k, Above: above, Agents: agents, Describe: x.describe,
	})
	if err != nil {
		return err
	}
	for c, err := range x.local.o.Store.Commits(ctx, x.ID, 0) {
		if err != nil {
			return errors.Join(err, f.Close(ctx))
		}
		if c.Seq > seq {
			break
		}
		f.Commit(ctx, &c)
	}
	x.trail = f
	return nil
}

// place is where the trajectory of a run goes: the round of the run at the root of
// its tree, and the sub-agent that it is there.
func (l *Local) place(ctx context.Context, run string, start *engine.RunStarted) (trajectory.Key, string, *follow.Agents, error) {
	line := []*engine.RunStarted{start}
	for start.Parent != "" {
		run = start.Parent
		s, err := StartIn(ctx, l.o.Store, run)
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
		above = follow.Below(above, s)
	}
	if above != "" {
		k.Sub = agents.Number(above)
	}
	return k, above, agents, nil
}

// describe is what a tool of this process does.
func (x *Execution) describe(name string) string {
	if t := x.m.services.Tools.Get(name); t != nil {
		return t.Description
	}
	return ""
}

// closeTrail saves the run's trajectory and lets go of it.
func (x *Execution) closeTrail(ctx context.Context) {
	switch {
	case x.trail == nil:
		return
	case errors.Is(x.err, store.ErrFenced): // another process has the run, and keeps it
		if err := x.trail.Abandon(ctx); err != nil {
			x.local.o.Logger.Error("the trajectory of a run is not let go of", "run", x.ID, "error", err)
		}
		return
	}
	x.trail.Unfinished(ctx)
	if err := errors.Join(x.trail.Err(), x.trail.Close(ctx)); err != nil {
		x.local.o.Logger.Error("the trajectory of a run is not whole", "run", x.ID, "error", err)
	}
}

// tracer is a door whose run has a trajectory.
type tracer interface {
	// traced returns the run's follower, made where there was none.
	traced(a *attempt) (*follow.Follower, error)
}

func (x *Execution) traced(a *attempt) (*follow.Follower, error) {
	var err error
	open := func(*engine.Run) (engine.Event, error) {
		switch {
		case x.local.o.Trails == nil:
			err = node.ErrNoTrajectory
		case x.trail == nil:
			err = x.openTrail(x.m.seq)
		}
		return nil, nil
	}
	if a.cancel == nil { // on the run's own goroutine
		_, _ = open(nil)
		return x.trail, err
	}
	select {
	case failed := <-x.command(open):
		return x.trail, errors.Join(failed, err)
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
	if a.explain == nil && !slices.Contains(a.steps, key) {
		a.steps = append(a.steps, key)
		a.pending = append(a.pending, &engine.NoteRecorded{Path: a.Path, Key: key, Value: v})
	}
	return nil
}

// Trace implements node.Recordings.
func (a *attempt) Trace(op trajectory.Operation) (trajectory.ID, error) {
	d, ok := a.door.(tracer)
	if !ok || a.explain != nil {
		return "", node.ErrNoTrajectory
	}
	v, err := engine.Normalize(op)
	if err != nil {
		return "", err
	}
	f, err := d.traced(a)
	if err != nil {
		return "", err
	}
	key, err := a.trace(v)
	if err != nil {
		return "", err
	}
	made, ok := f.Made(key)
	if !ok {
		return "", fmt.Errorf("the trajectory of run %s does not have what %s added", a.ctx.Info().Run, key)
	}
	return made.ID, made.Err
}

// trace makes an operation durable, unless it is.
func (a *attempt) trace(v engine.Value) (key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key, err = a.noteKey(follow.NoteTrajectory, v); err != nil || slices.Contains(a.steps, key) {
		return key, err
	}
	events := append(a.pending, &engine.NoteRecorded{Path: a.Path, Key: key, Value: v})
	a.pending = nil
	if err := a.door.flush(a, events); err != nil {
		return key, err
	}
	a.steps = append(a.steps, key)
	return key, nil
}

// noteKey tells a note of the attempt from its others: an attempt that says
// something else at the same place makes another note. a.mu is held.
func (a *attempt) noteKey(kind string, v engine.Value) (string, error) {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return a.Path + "/" + kind + "#" + strconv.Itoa(a.ordinal("/"+kind)) + "." + hex.EncodeToString(sum[:4]), nil
}
