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

// The notes of nodes: their keys are PATH/KIND#ORDINAL.DIGEST. A note of the kind
// artifact has the Artifact as its value, one of the kind trajectory a
// trajectory.Operation.
const (
	NoteArtifact = "artifact"
	// NoteArtifacts has what the key `artifacts` of a node of the flow declared: a list
	// of them, and why others could not be made.
	NoteArtifacts  = "artifacts"
	NoteTrajectory = "trajectory"
	// NotePortrait is the kind of notes of a run: a Portrait.
	NotePortrait = "portrait"
)

// Portrait is the description that a model made of a piece of data, or why it made
// none.
type Portrait struct {
	Sub   int           `json:"sub,omitempty"`
	ID    trajectory.ID `json:"id"`
	Text  string        `json:"text,omitempty"`
	Error string        `json:"error,omitempty"`
	Model string        `json:"model,omitempty"`
}

// PortraitError is the attribute that says why a piece of data has no portrait.
const PortraitError = "portrait_error"

// ArtifactError is the attribute of a node's Action that says which of the artifacts
// that the flow has it declare could not be made, and why.
const ArtifactError = "artifact_error"

// noted is a note of artifacts that a node declared, and why others could not be made.
type noted struct {
	key       string
	Artifacts []trajectory.Artifact `json:"artifacts"`
	Error     string                `json:"error"`
}

func (f *Follower) note(at time.Time, e *engine.NoteRecorded) error {
	if e.Path == "" {
		return f.portrait(at, e)
	}
	if _, known := f.made[e.Key]; known {
		return nil
	}
	w := f.open[e.Path]
	if w == nil {
		return nil
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(e.Key, e.Path+"/"), "#")
	switch kind {
	case NoteArtifact:
		var a trajectory.Artifact
		if err := fill(e.Value, &a); err != nil {
			return fmt.Errorf("read an artifact: %w", err)
		}
		w.notes = append(w.notes, noted{key: e.Key, Artifacts: []trajectory.Artifact{a}})
	case NoteArtifacts:
		n := noted{key: e.Key}
		if err := fill(e.Value, &n); err != nil {
			return fmt.Errorf("read artifacts: %w", err)
		}
		w.notes = append(w.notes, n)
	case NoteTrajectory:
		var op trajectory.Operation
		if err := fill(e.Value, &op); err != nil {
			return fmt.Errorf("read an operation: %w", err)
		}
		id, err := f.operate(at, w, op)
		f.made[e.Key] = Made{id, err}
	}
	return nil
}

// operate does what a node asks for. What it adds without predecessors follows from
// what it added before, else from what the node follows from.
func (f *Follower) operate(at time.Time, w *work, op trajectory.Operation) (trajectory.ID, error) {
	r, by := f.main.recorder, f.by(w.path, "")
	switch {
	case op.Add != nil:
		n := *op.Add
		n.At, n.By = at, by
		if len(n.After) == 0 && n.Type != trajectory.Query {
			n.After = f.after(w)
		}
		id, err := r.Add(n)
		if err == nil {
			w.byHand = true
			if !n.Type.Data() && n.Pointer != trajectory.Keep {
				w.ends = []trajectory.ID{id}
			}
			if n.Type.Data() {
				f.noticed(f.main, id, trajectory.Artifact{Description: n.Description})
			}
		}
		return id, err
	case op.Link != nil:
		return "", r.Link(op.Link.Source, op.Link.Target, op.Link.Relationship)
	case op.Edit != nil:
		return op.Edit.ID, r.Edit(op.Edit.ID, op.Edit.Edit, by, at)
	}
	return "", r.Point(op.Point...)
}

// declared records the artifacts that a node declared.
func (f *Follower) declared(at time.Time, w *work) error {
	var errs []error
	for _, n := range w.notes {
		made := Made{}
		for _, a := range n.Artifacts {
			id, err := f.main.recorder.Declare(f.by(w.path, ""), at, f.after(w)[0], a, trajectory.Produces)
			if made = (Made{id, err}); err != nil {
				errs = append(errs, err)
				continue
			}
			f.noticed(f.main, id, a)
		}
		if len(w.ends) > 0 && n.Error != "" {
			edit := trajectory.Edit{Set: map[string]any{ArtifactError: n.Error}}
			errs = append(errs, f.main.recorder.Edit(w.ends[0], edit, f.by(w.path, ""), at))
		}
		f.made[n.key] = made
	}
	w.notes = nil
	return errors.Join(errs...)
}

// Datum is a piece of data in the trajectory of an agent.
type Datum struct {
	Sub int
	ID  trajectory.ID
}

// noticed remembers a piece of data that nothing describes yet.
func (f *Follower) noticed(s *sub, id trajectory.ID, a trajectory.Artifact) {
	if d := (Datum{s.recorder.Key().Sub, id}); a.Description == "" && !f.given[d] {
		f.plain[d] = true
	}
}

// Plain are the pieces of data that nothing describes, those that were given before
// excepted.
func (f *Follower) Plain() []Datum {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.plain) == 0 {
		return nil
	}
	out := slices.SortedFunc(maps.Keys(f.plain), func(a, b Datum) int {
		return cmp.Or(cmp.Compare(a.Sub, b.Sub), strings.Compare(string(a.ID), string(b.ID)))
	})
	maps.Copy(f.given, f.plain)
	clear(f.plain)
	return out
}

// of is the recorder of an agent of the run, nil for none.
func (f *Follower) of(number int) *trajectory.Recorder {
	if number == f.o.Key.Sub {
		return f.main.recorder
	}
	for _, s := range f.subs { // order: at most one has the number
		if s.recorder.Key().Sub == number {
			return s.recorder
		}
	}
	return nil
}

// PortraitOf is the portrait that a note is, and whether it is one.
func PortraitOf(e *engine.NoteRecorded) (Portrait, bool) {
	var p Portrait
	if e.Path != "" || !strings.HasPrefix(e.Key, NotePortrait+"#") {
		return p, false
	}
	return p, fill(e.Value, &p) == nil
}

// portrait describes a piece of data as a model did, or says that it did not.
func (f *Follower) portrait(at time.Time, e *engine.NoteRecorded) error {
	p, ok := PortraitOf(e)
	if !ok {
		return nil
	}
	delete(f.plain, Datum{p.Sub, p.ID})
	f.given[Datum{p.Sub, p.ID}] = true
	r := f.of(p.Sub)
	if r == nil {
		return fmt.Errorf("a portrait of %s of sub-agent %d, which did not work", p.ID, p.Sub)
	}
	by := f.by("", "")
	by.Agent = NotePortrait
	edit := trajectory.Edit{Description: &p.Text}
	if p.Error != "" {
		edit = trajectory.Edit{Set: map[string]any{PortraitError: p.Error}}
	}
	return r.Edit(p.ID, edit, by, at)
}

func sorted(m trajectory.Attributes) []string { return slices.Sorted(maps.Keys(m)) }

func joined(texts []string) string { return strings.Join(texts, "\n") }
