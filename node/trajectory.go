package node

import (
	"errors"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// ArtifactsKey is the key of a tool call's recorded result with the artifacts that the tool
// declared.
const ArtifactsKey = "artifacts"

// declaredArtifacts collects the artifacts that one call of a tool declares.
type declaredArtifacts struct {
	mu     sync.Mutex
	list   []any
	closed bool
}

// add adds an artifact. It ignores artifacts declared after the call has ended.
func (l *declaredArtifacts) add(a trajectory.Artifact) {
	v, err := a.Value()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.closed { // Declare has checked it
		l.list = append(l.list, v)
	}
}

// addTo adds the declared artifacts to a recorded result.
func (l *declaredArtifacts) addTo(result map[string]any) engine.Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.list != nil {
		result[ArtifactsKey] = l.list
	}
	return result
}

// caller says whether a model or the node makes the call.
func (c *Ctx) caller() tool.Caller {
	i := c.info
	return tool.Caller{Run: i.Run, Flow: i.Flow, User: i.User, Session: i.Session, Round: i.Round}
}

// TrajectoryRecorder is a Host that records a node's additions to the trajectory of its
// run.
type TrajectoryRecorder interface {
	// Declare records an artifact together with the effects before it, when the attempt
	// ends.
	Declare(a trajectory.Artifact) error
	// Trace makes an operation durable and performs it. A recorded operation is not
	// repeated, and returns the node that it created.
	Trace(op trajectory.Operation) (trajectory.ID, error)
}

// Declare declares that the node found, used or made data, for the trajectory of the run.
// An invalid artifact is an error.
func (c *Ctx) Declare(a trajectory.Artifact) error {
	if err := a.Check(); err != nil {
		return err
	}
	if r, ok := c.host.(TrajectoryRecorder); ok {
		return r.Declare(a)
	}
	return nil
}

// Trajectory returns the trajectory for manual additions. A node that adds to it is not
// recorded automatically.
func (c *Ctx) Trajectory() Trajectory { return Trajectory{c.host} }

// Trajectory adds to the trajectory of a run. Each operation is durable when it returns,
// and is not repeated when the node is re-entered.
type Trajectory struct{ host Host }

// ErrNoTrajectory means that no trajectory is recorded here.
var ErrNoTrajectory = errors.New("no trajectory is recorded here")

func (t Trajectory) do(op trajectory.Operation) (trajectory.ID, error) {
	r, ok := t.host.(TrajectoryRecorder)
	if !ok {
		return "", ErrNoTrajectory
	}
	return r.Trace(op)
}

// Add creates a node of the graph, with edges from its predecessors, which are nodes of the
// round; without any, they are what this node of the flow added before, or else what the
// node follows from. By and At are set. The errors are those of trajectory.Recorder.Add: a
// relation that does not follow from the types must be given, and a predecessor must be of
// this round.
func (t Trajectory) Add(n trajectory.NewNode) (trajectory.ID, error) {
	return t.do(trajectory.Operation{Add: &n})
}

// Link creates an edge between two nodes of the round; see trajectory.Recorder.Link.
func (t Trajectory) Link(from, to trajectory.ID, relation trajectory.Relation) error {
	_, err := t.do(trajectory.Operation{Link: &trajectory.Edge{Source: from, Target: to, Relationship: relation}})
	return err
}

// Edit changes a node of the round; its history keeps the replaced version.
func (t Trajectory) Edit(id trajectory.ID, e trajectory.Edit) error {
	_, err := t.do(trajectory.Operation{Edit: &trajectory.NodeEdit{ID: id, Edit: e}})
	return err
}

// Point sets the active branch pointers.
func (t Trajectory) Point(ids ...trajectory.ID) error {
	_, err := t.do(trajectory.Operation{Point: ids})
	return err
}
