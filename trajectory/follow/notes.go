package follow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/trajectory"
)

// The notes of nodes: their keys are PATH/KIND#ORDINAL.DIGEST. The value of a note of the kind artifact is the
// Artifact, that of the kind trajectory a trajectory.Operation.
const (
	NoteArtifact = "artifact"
	// NoteArtifacts is the kind of the note for the key `artifacts` of a flow's node: the declared artifacts, and why
	// others are invalid.
	NoteArtifacts  = "artifacts"
	NoteTrajectory = "trajectory"
	// NoteDescription is the kind of a run's notes with a DataDescription.
	NoteDescription = "portrait"
)

// DataDescription is a model's description of a piece of data, or the reason why there is none.
type DataDescription struct {
	Sub   int           `json:"sub,omitempty"`
	ID    trajectory.ID `json:"id"`
	Text  string        `json:"text,omitempty"`
	Error string        `json:"error,omitempty"`
	Model string        `json:"model,omitempty"`
}

// AttrDescriptionError is the attribute with the reason why a piece of data has no description.
const AttrDescriptionError = "portrait_error"

// AttrArtifactError is the attribute of a node's Action with the artifacts of the flow that could not be declared,
// and the reasons.
const AttrArtifactError = "artifact_error"

// artifactNote has the artifacts that a node declared, and why others are invalid.
type artifactNote struct {
	key       string
	Artifacts []trajectory.Artifact `json:"artifacts"`
	Error     string                `json:"error"`
}

func (f *Follower) handleNote(at time.Time, e *engine.NoteRecorded) error {
	if e.Path == "" {
		return f.applyDescription(at, e)
	}
	if _, known := f.noteResults[e.Key]; known {
		return nil
	}
	w := f.running[e.Path]
	if w == nil {
		return nil
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(e.Key, e.Path+"/"), "#")
	switch kind {
	case NoteArtifact:
		var a trajectory.Artifact
		if err := decodeValue(e.Value, &a); err != nil {
			return fmt.Errorf("read an artifact: %w", err)
		}
		w.artifactNotes = append(w.artifactNotes, artifactNote{key: e.Key, Artifacts: []trajectory.Artifact{a}})
	case NoteArtifacts:
		n := artifactNote{key: e.Key}
		if err := decodeValue(e.Value, &n); err != nil {
			return fmt.Errorf("read artifacts: %w", err)
		}
		w.artifactNotes = append(w.artifactNotes, n)
	case NoteTrajectory:
		var op trajectory.Operation
		if err := decodeValue(e.Value, &op); err != nil {
			return fmt.Errorf("read an operation: %w", err)
		}
		id, err := f.applyOperation(at, w, op)
		f.noteResults[e.Key] = NoteResult{id, err}
	}
	return nil
}

// applyOperation performs the operation of a node. Nodes that it adds without predecessors follow its earlier
// additions, otherwise the predecessors of the flow's node.
func (f *Follower) applyOperation(at time.Time, w *nodeWork, op trajectory.Operation) (trajectory.ID, error) {
	r, by := f.main.recorder, f.attribution(w.path, "")
	switch {
	case op.Add != nil:
		n := *op.Add
		n.At, n.By = at, by
		if len(n.After) == 0 && n.Type != trajectory.Query {
			n.After = f.nextPredecessors(w)
		}
		id, err := r.Add(n)
		if err == nil {
			w.addedNodes = true
			if !n.Type.IsData() && n.Pointer != trajectory.PointerKeep {
				w.ends = []trajectory.ID{id}
			}
			if n.Type.IsData() {
				f.addUndescribed(f.main, id, trajectory.Artifact{Description: n.Description})
			}
		}
		return id, err
	case op.Link != nil:
		return "", r.Link(op.Link.Source, op.Link.Target, op.Link.Relationship)
	case op.Edit != nil:
		return op.Edit.ID, r.Edit(op.Edit.ID, op.Edit.Edit, by, at)
	}
	return "", r.SetPointers(op.Point...)
}

// recordDeclared records the artifacts that a node declared.
func (f *Follower) recordDeclared(at time.Time, w *nodeWork) error {
	var errs []error
	for _, n := range w.artifactNotes {
		made := NoteResult{}
		for _, a := range n.Artifacts {
			id, err := f.main.recorder.Declare(f.attribution(w.path, ""), at, f.nextPredecessors(w)[0], a, trajectory.Produces)
			if made = (NoteResult{id, err}); err != nil {
				errs = append(errs, err)
				continue
			}
			f.addUndescribed(f.main, id, a)
		}
		if len(w.ends) > 0 && n.Error != "" {
			edit := trajectory.Edit{Set: map[string]any{AttrArtifactError: n.Error}}
			errs = append(errs, f.main.recorder.Edit(w.ends[0], edit, f.attribution(w.path, ""), at))
		}
		f.noteResults[n.key] = made
	}
	w.artifactNotes = nil
	return errors.Join(errs...)
}

// DataRef identifies a piece of data in the trajectory of an agent.
type DataRef struct {
	Sub int
	ID  trajectory.ID
}

// maxDescribedColumns limits how many columns of one table are described: each is a call of the describer.
const maxDescribedColumns = 32

// addUndescribed adds a piece of data without description, and the columns of a table, to the list.
func (f *Follower) addUndescribed(s *agentRecorder, id trajectory.ID, a trajectory.Artifact) {
	add := func(id trajectory.ID) {
		if d := (DataRef{s.recorder.Key().Sub, id}); !f.returned[d] {
			f.undescribed[d] = true
		}
	}
	if a.Description == "" {
		add(id)
	}
	for _, name := range a.Columns[:min(len(a.Columns), maxDescribedColumns)] {
		if column, ok := s.recorder.Column(a.Name, name); ok {
			add(column)
		}
	}
}

// Undescribed returns the pieces of data without description that it has not returned before.
func (f *Follower) Undescribed() []DataRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.undescribed) == 0 {
		return nil
	}
	out := slices.SortedFunc(maps.Keys(f.undescribed), func(a, b DataRef) int {
		return cmp.Or(cmp.Compare(a.Sub, b.Sub), strings.Compare(string(a.ID), string(b.ID)))
	})
	maps.Copy(f.returned, f.undescribed)
	clear(f.undescribed)
	return out
}

// recorderOf returns the recorder of an agent of the run, nil if there is none.
func (f *Follower) recorderOf(number int) *trajectory.Recorder {
	if number == f.options.Key.Sub {
		return f.main.recorder
	}
	for _, s := range f.agentRecorders { // order: at most one has the number
		if s.recorder.Key().Sub == number {
			return s.recorder
		}
	}
	return nil
}

// DescriptionOf returns the description in a note, and whether the note is one.
func DescriptionOf(e *engine.NoteRecorded) (DataDescription, bool) {
	var p DataDescription
	if e.Path != "" || !strings.HasPrefix(e.Key, NoteDescription+"#") {
		return p, false
	}
	return p, decodeValue(e.Value, &p) == nil
}

// applyDescription records a model's description of a piece of data, or that there is none.
func (f *Follower) applyDescription(at time.Time, e *engine.NoteRecorded) error {
	p, ok := DescriptionOf(e)
	if !ok {
		return nil
	}
	delete(f.undescribed, DataRef{p.Sub, p.ID})
	f.returned[DataRef{p.Sub, p.ID}] = true
	r := f.recorderOf(p.Sub)
	if r == nil {
		return fmt.Errorf("a description of %s of sub-agent %d, which did not work", p.ID, p.Sub)
	}
	by := f.attribution("", "")
	by.Agent = NoteDescription
	edit := trajectory.Edit{Description: &p.Text}
	if p.Error != "" {
		edit = trajectory.Edit{Set: map[string]any{AttrDescriptionError: p.Error}}
	}
	return r.Edit(p.ID, edit, by, at)
}

func sorted(m trajectory.Attributes) []string { return slices.Sorted(maps.Keys(m)) }

func joined(texts []string) string { return strings.Join(texts, "\n") }
