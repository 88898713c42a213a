package trajectory

import (
	"errors"
	"fmt"

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
	case !a.Type.Known():
		return bad("its type is none of %v", data())
	case !a.Type.Data():
		return bad("%s is a step, and not one of %v", a.Type, data())
	case a.Name == "":
		return bad("it has no name")
	case len(a.Columns) > 0 && a.Type != Table:
		return bad("only a Table has columns")
	}
	if a.Relation != "" {
		if _, err := Relate(MakeID(Action, 0), MakeID(a.Type, 0), a.Relation); err != nil {
			return bad("%v", err)
		}
	}
	if _, err := attributes(a.Attributes); err != nil {
		return bad("%v", err)
	}
	return nil
}

// Value is the artifact as plain JSON, for those who record it.
func (a Artifact) Value() (engine.Value, error) { return engine.Normalize(a) }

func data() []Type {
	var out []Type
	for _, t := range Types() {
		if t.Data() {
			out = append(out, t)
		}
	}
	return out
}
