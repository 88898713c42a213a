package trajectory

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
)

// Artifact is a piece of data that a tool or a node declares: it found, used or
// made it. In the graph of the round it becomes a node, one for each type and
// name, that the Action which declared it leads to.
type Artifact struct {
	// Type is one of those of data.
	Type Type `json:"type"`
	// Name tells it from the others of its type in the round: a path, a table's
	// name, a title.
	Name string `json:"name"`
	// Description says what it is; where it is empty a portrait may fill it in.
	Description string         `json:"description,omitempty"`
	Attributes  map[string]any `json:"attributes,omitempty"` // plain JSON
	// Relation is that of the edge to it; "" is tool_output for a tool's and produces
	// for a node's.
	Relation Relation `json:"relation,omitempty"`
	// Columns names the columns of a Table; each becomes a Column.
	Columns []string `json:"columns,omitempty"`
}

// ErrArtifact: the artifact is not one that can be declared.
var ErrArtifact = errors.New("cannot be declared")

// Check returns an ErrArtifact that says what is wrong with the artifact.
func (a Artifact) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("artifact %s %q %w: %s", a.Type, a.Name, ErrArtifact, fmt.Sprintf(format, args...))
	}
	switch {
	case !a.Type.IsValid():
		return bad("its type is none of %v", data())
	case !a.Type.IsData():
		return bad("%s is a step, and not one of %v", a.Type, data())
	case a.Name == "":
		return bad("it has no name")
	case len(a.Columns) > 0 && a.Type != Table:
		return bad("only a Table has columns")
	}
	if a.Relation != "" {
		if _, err := ResolveRelation(MakeID(Action, 0), MakeID(a.Type, 0), a.Relation); err != nil {
			return bad("%v", err)
		}
	}
	if _, err := copyAttributes(a.Attributes); err != nil {
		return bad("%v", err)
	}
	return nil
}

// Value is the artifact as plain JSON, for those who record it.
func (a Artifact) Value() (engine.Value, error) { return engine.Normalize(a) }

// Declare says that a node of the round found, used or made a piece of data. The
// first time there is a node made for it; later it is linked to that, which is
// edited where the artifact says something else. relation is that of an artifact
// without one.
func (r *Recorder) Declare(by Attribution, at time.Time, from ID, a Artifact, relation Relation) (ID, error) {
	if err := a.Check(); err != nil {
		return "", fmt.Errorf("declare: %w", err)
	}
	a.Relation = cmp.Or(a.Relation, relation)
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := r.declare(by, at, from, a)
	if err != nil {
		return "", fmt.Errorf("declare: %w", err)
	}
	for _, name := range a.Columns {
		if _, err := r.declare(by, at, id, Artifact{Type: Column, Name: a.Name + "." + name, Relation: HasColumn}); err != nil {
			return id, fmt.Errorf("declare column %s: %w", name, err)
		}
	}
	return id, nil
}

// declare makes or finds the node of an artifact and links it; mu is held.
func (r *Recorder) declare(by Attribution, at time.Time, from ID, a Artifact) (ID, error) {
	attrs, err := copyAttributes(a.Attributes)
	if err != nil {
		return "", err
	}
	id, known := r.recordIndex.data[dataKey{a.Type, a.Name}]
	if !known {
		return r.add(NewNode{
			Type: a.Type, Name: a.Name, Description: a.Description, After: []ID{from}, Relation: a.Relation, By: by, At: at,
		}, attrs)
	}
	e := Edit{Set: attrs}
	if a.Description != "" {
		e.Description = &a.Description
	}
	if err := r.edit(id, e, by, at); err != nil {
		return id, err
	}
	err = r.link(from, id, a.Relation)
	if errors.Is(err, ErrCycle) || errors.Is(err, ErrAlreadyLinked) { // it led here, or is linked in another way
		return id, nil
	}
	return id, err
}

func data() []Type {
	var out []Type
	for _, t := range Types() {
		if t.IsData() {
			out = append(out, t)
		}
	}
	return out
}
