package weir

import (
	"encoding/json"
	"fmt"
)

// Definition is a flow written in Go, in the authoring form of a file: the same
// keys, the same templates, validated by the same rules.
type Definition struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Context     map[string]any      `json:"context,omitempty"`
	Inputs      map[string]any      `json:"inputs,omitempty"`
	State       map[string]any      `json:"state,omitempty"`
	Nodes       map[string]NodeSpec `json:"nodes"`
	Edges       []map[string]any    `json:"edges,omitempty"`
	Outputs     map[string]any      `json:"outputs,omitempty"`
}

// NodeSpec is one node of a Definition.
type NodeSpec struct {
	Type      string         `json:"type"`
	In        map[string]any `json:"in,omitempty"`
	With      map[string]any `json:"with,omitempty"`
	After     []string       `json:"after,omitempty"`
	Context   string         `json:"context,omitempty"`
	Join      string         `json:"join,omitempty"`
	Retry     map[string]any `json:"retry,omitempty"`
	Timeout   any            `json:"timeout,omitempty"`
	OnError   any            `json:"onError,omitempty"`
	Cache     any            `json:"cache,omitempty"`
	Isolation string         `json:"isolation,omitempty"`
}

// Define validates a definition; the error is a *flow.Invalid with all
// problems where it is not a valid flow.
func (w *Weir) Define(d Definition) (*Flow, error) {
	b, err := json.Marshal(struct {
		Weir int `json:"weir"`
		Definition
	}{1, d})
	if err != nil {
		return nil, fmt.Errorf("define flow %s: %w", d.Name, err)
	}
	return w.Parse(d.Name, b)
}
