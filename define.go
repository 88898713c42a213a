package weir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/flow"
)

// Definition is a flow written in Go. It has the keys and templates of a flow file and is
// validated by the same rules.
type Definition struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Context     map[string]any `json:"context,omitempty"`
	Session     map[string]any `json:"session,omitempty"`
	// Budget limits what a run may spend on models, as flow.Spend does.
	Budget map[string]any `json:"budget,omitempty"`
	// Timeout limits the time of a run, including the time it waits: "10m", or seconds.
	Timeout any `json:"timeout,omitempty"`
	// Uses pins flows that nodes name to fingerprints.
	Uses    map[string]string   `json:"uses,omitempty"`
	Inputs  map[string]any      `json:"inputs,omitempty"`
	State   map[string]any      `json:"state,omitempty"`
	Nodes   map[string]NodeSpec `json:"nodes"`
	Edges   []map[string]any    `json:"edges,omitempty"`
	Outputs map[string]any      `json:"outputs,omitempty"`
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
	// Budget limits what the node and the nodes in its body may spend on models.
	Budget map[string]any `json:"budget,omitempty"`
	// InterruptBefore and InterruptAfter pause the run before or after the node.
	InterruptBefore bool   `json:"interruptBefore,omitempty"`
	InterruptAfter  bool   `json:"interruptAfter,omitempty"`
	Description     string `json:"description,omitempty"`
	// Artifacts declare data that the node found, used or made, as flow.Artifact does.
	Artifacts []map[string]any `json:"artifacts,omitempty"`
}

// Define validates a definition. A time.Duration in it is written as in a flow file: "100ms". The error is a *flow.Invalid with all
// problems where it is not a valid flow. A node of type flow names the flow it
// runs by the value itself:
//
//	"review": {Type: "flow", With: map[string]any{"flow": review}}
func (w *Weir) Define(d Definition) (*Flow, error) {
	used := flowNamer{flows: make(map[string]*Flow)}
	d.Nodes = used.nameNodes(d.Nodes)
	for _, m := range []*map[string]any{&d.Context, &d.Session, &d.Budget, &d.Inputs, &d.State, &d.Outputs} {
		*m = used.nameMembers(*m)
	}
	d.Timeout = used.nameValue(d.Timeout)
	b, err := json.Marshal(struct {
		Weir int `json:"weir"`
		Definition
	}{1, d})
	if err != nil {
		return nil, fmt.Errorf("define flow %s: %w", d.Name, err)
	}
	return flow.Source{Flows: used.flows}.Parse(d.Name, b, w.catalogue)
}

// flowNamer names the flows that settings contain as values.
type flowNamer struct{ flows map[string]*Flow }

// nameOf returns the name of the flow. A number is added if another flow has the name, or if it
// is the name of the enclosing flow.
func (n flowNamer) nameOf(f *Flow) string {
	name := f.Name
	for i := 2; name == flow.Self || n.flows[name] != nil && n.flows[name].Fingerprint() != f.Fingerprint(); i++ {
		name = fmt.Sprintf("%s#%d", f.Name, i)
	}
	n.flows[name] = f
	return name
}

// nameNodes returns a copy of nodes in which names replace flows, also in bodies.
func (n flowNamer) nameNodes(specs map[string]NodeSpec) map[string]NodeSpec {
	out := make(map[string]NodeSpec, len(specs))
	for _, id := range slices.Sorted(maps.Keys(specs)) {
		spec := specs[id]
		for _, m := range []*map[string]any{&spec.In, &spec.With, &spec.Retry, &spec.Budget} {
			*m = n.nameMembers(*m)
		}
		for _, v := range []*any{&spec.Timeout, &spec.OnError, &spec.Cache} {
			*v = n.nameValue(*v)
		}
		out[id] = spec
	}
	return out
}

// nameMembers is nameValue for each member of an object.
func (n flowNamer) nameMembers(m map[string]any) map[string]any {
	out, _ := n.nameValue(m).(map[string]any)
	return out
}

// nameValue returns a copy of a value in which names replace flows, and texts durations, of which JSON would make numbers of
// nanoseconds that a flow file reads as seconds.
func (n flowNamer) nameValue(v any) any {
	switch v := v.(type) {
	case *Flow:
		return n.nameOf(v)
	case time.Duration:
		return v.String()
	case map[string]NodeSpec:
		return n.nameNodes(v)
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[k] = n.nameValue(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.nameValue(v[i])
		}
		return out
	}
	return v
}
