package node

import (
	"errors"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// ArtifactsKey is where the recorded result of a tool call has the artifacts
// that the tool declared.
const ArtifactsKey = "artifacts"

// declaredArtifacts gathers what one call of a tool declares.
type declaredArtifacts struct {
	mu     sync.Mutex
	list   []any
	closed bool
}

// add notes an artifact; what comes after the call has ended is too late.
func (l *declaredArtifacts) add(a trajectory.Artifact) {
	v, err := a.Value()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.closed { // Declare has checked it
		l.list = append(l.list, v)
	}
}

// addTo puts what was declared into a recorded result.
func (l *declaredArtifacts) addTo(result map[string]any) engine.Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.list != nil {
		result[ArtifactsKey] = l.list
	}
	return result
}

// caller says for whom the node calls tools.
func (c *Ctx) caller() tool.Caller {
	i := c.info
	return tool.Caller{Run: i.Run, Flow: i.Flow, User: i.User, Session: i.Session, Round: i.Round}
}

// TrajectoryRecorder keep what a node says of its work for the trajectory of its run. A
// host that keeps none does not have them.
type TrajectoryRecorder interface {
	// Declare notes an artifact with the effects before it; it is recorded when the
	// attempt ends.
	Declare(a trajectory.Artifact) error
	// Trace makes an operation durable and does it. One that is recorded is not done
	// again, and gives the node that it made.
	Trace(op trajectory.Operation) (trajectory.ID, error)
}

// Declare says that the node found, used or made a piece of data, for the trajectory
// of the run. An artifact that cannot be declared is an error.
func (c *Ctx) Declare(a trajectory.Artifact) error {
	if err := a.Check(); err != nil {
		return err
	}
	if r, ok := c.host.(TrajectoryRecorder); ok {
		return r.Declare(a)
	}
	return nil
}

// Trajectory is the graph of what the agent does, to add to by hand. A node that
// adds to it is not recorded by itself besides.
func (c *Ctx) Trajectory() Trajectory { return Trajectory{c.host} }

// Trajectory adds to the trajectory of a run. Each call is durable when it returns
// and is not done again where the node is entered again.
type Trajectory struct{ host Host }

// ErrNoTrajectory: whoever runs the node keeps no trajectory.
var ErrNoTrajectory = errors.New("no trajectory is kept here")

func (t Trajectory) do(op trajectory.Operation) (trajectory.ID, error) {
	r, ok := t.host.(TrajectoryRecorder)
	if !ok {
		return "", ErrNoTrajectory
	}
	return r.Trace(op)
}

// Add makes a node of the graph, with edges from its predecessors: nodes of the
// round; where it names none, what this node of the flow added before, else what
// the node follows from. By and At are filled in. The errors are those of
// trajectory.Recorder.Add: a relation that does not follow from the types must be
// given, a predecessor must be of this round.
func (t Trajectory) Add(n trajectory.NewNode) (trajectory.ID, error) {
	return t.do(trajectory.Operation{Add: &n})
}

// Link makes an edge between two nodes of the round; see trajectory.Recorder.Link.
func (t Trajectory) Link(from, to trajectory.ID, relation trajectory.Relation) error {
	_, err := t.do(trajectory.Operation{Link: &trajectory.Edge{Source: from, Target: to, Relationship: relation}})
	return err
}

// Edit changes a node of the round; its history keeps what is replaced.
func (t Trajectory) Edit(id trajectory.ID, e trajectory.Edit) error {
	_, err := t.do(trajectory.Operation{Edit: &trajectory.NodeEdit{ID: id, Edit: e}})
	return err
}

// Point sets the active branch pointers.
func (t Trajectory) Point(ids ...trajectory.ID) error {
	_, err := t.do(trajectory.Operation{Point: ids})
	return err
}
