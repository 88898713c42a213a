package trajectory

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
)

// Artifact is a piece of data that a tool or a node declares to have found, used or made. In the graph of the round
// it becomes a node, one for each type and name, with an edge from the Action that declared it.
type Artifact struct {
	// Type is one of the data types.
	Type Type `json:"type"`
	// Name distinguishes it from others of its type in the round: a path, a table's name, a title.
	Name string `json:"name"`
	// Description describes it; if empty, a model may fill it in.
	Description string         `json:"description,omitempty"`
	Attributes  map[string]any `json:"attributes,omitempty"` // plain JSON
	// Relation is the relation of the edge to it; "" means tool_output for a tool's and produces for a node's.
	Relation Relation `json:"relation,omitempty"`
	// Columns names the columns of a Table; each becomes a Column.
	Columns []string `json:"columns,omitempty"`
}

// ErrArtifact means that an artifact is invalid.
var ErrArtifact = errors.New("cannot be declared")

// Check returns an ErrArtifact that describes the problem.
func (a Artifact) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("artifact %s %q %w: %s", a.Type, a.Name, ErrArtifact, fmt.Sprintf(format, args...))
	}
	switch {
	case !a.Type.IsValid():
		return bad("its type must be one of %v", data())
	case !a.Type.IsData():
		return bad("%s is the type of a step; use one of %v", a.Type, data())
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

// Value returns the artifact as plain JSON, for recording.
func (a Artifact) Value() (engine.Value, error) { return engine.Normalize(a) }

// Declare records that a node of the round found, used or made a piece of data. The first declaration creates a node;
// later ones link to it, and edit it if the artifact differs. relation is the default for an artifact without one.
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
		if _, err := r.declare(by, at, id, Artifact{Type: Column, Name: columnName(a.Name, name), Relation: HasColumn}); err != nil {
			return id, fmt.Errorf("declare column %s: %w", name, err)
		}
	}
	return id, nil
}

func columnName(table, column string) string { return table + "." + column }

// Column returns the id of a column of a table that was declared in the round; ok is false if
// there is none.
func (r *Recorder) Column(table, column string) (id ID, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok = r.recordIndex.data[dataKey{Column, columnName(table, column)}]
	return id, ok
}

// declare finds or creates the node of an artifact and links it; mu is held.
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
	if errors.Is(err, ErrCycle) || errors.Is(err, ErrAlreadyLinked) { // there is a path already, or an edge with another relation
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
