package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Specs has the parts of the node types of a flow, and of the flows that it uses, that are
// needed to read records of their runs. A store keeps them by digest next to the flow, so
// that a process with other node types, or other versions of them, can read the run.
type Specs struct {
	// Format is specsFormat.
	Format string `json:"specs"`
	// Flows are the specs of each flow, by fingerprint.
	Flows map[string]FlowSpecs `json:"flows"`
}

// specsFormat is the format of an encoded Specs.
const specsFormat = "weir-specs-1"

// FlowSpecs are the node types of one flow.
type FlowSpecs struct {
	// Types are the specs of node types by name. Nodes are the specs of nodes whose
	// settings change them, by path: "refine/draft".
	Types map[string]*NodeSpec `json:"types"`
	Nodes map[string]*NodeSpec `json:"nodes,omitempty"`
}

// NodeSpec is the part of a node's type that is needed to read records.
type NodeSpec struct {
	Version int        `json:"version"`
	In      []PortSpec `json:"in,omitempty"`
	Out     []PortSpec `json:"out,omitempty"`
	AnyIn   bool       `json:"anyIn,omitempty"`
	AnyOut  bool       `json:"anyOut,omitempty"`
	// Context is "read" or "write", "" for a node without a context.
	Context     string `json:"context,omitempty"`
	Composite   bool   `json:"composite,omitempty"`
	Branches    bool   `json:"branches,omitempty"`
	NewContext  bool   `json:"newContext,omitempty"`
	PassThrough bool   `json:"passThrough,omitempty"`
	Inline      bool   `json:"inline,omitempty"`
	// Uses says that the node runs the flow in its setting `flow`; Runs lists the
	// references of other flows that it may run.
	Uses bool     `json:"uses,omitempty"`
	Runs []string `json:"runs,omitempty"`
}

// PortSpec is one port of a NodeSpec.
type PortSpec struct {
	Name      string   `json:"name"`
	Type      PortType `json:"type,omitempty"`
	Required  bool     `json:"required,omitempty"`
	Lazy      bool     `json:"lazy,omitempty"`
	Many      bool     `json:"many,omitempty"`
	Exclusive bool     `json:"exclusive,omitempty"`
	Branch    bool     `json:"branch,omitempty"`
}

// SpecsOf returns the specs of a flow that was loaded with a catalogue.
func SpecsOf(f *Flow, c Catalogue) *Specs {
	s := &Specs{Format: specsFormat, Flows: make(map[string]FlowSpecs)}
	for _, used := range f.Dependencies() {
		fs := FlowSpecs{Types: make(map[string]*NodeSpec), Nodes: make(map[string]*NodeSpec)}
		fs.add(used, &used.Graph, "", c)
		s.Flows[used.Fingerprint()] = fs
	}
	return s
}

// Encode returns the JSON of the specs and its digest, "sha256:" and hex digits, under
// which a store keeps it.
func (s *Specs) Encode() (digest string, data []byte, err error) {
	if data, err = json.Marshal(s); err != nil {
		return "", nil, fmt.Errorf("encode specs: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), data, nil
}

// DecodeSpecs reads the output of Encode.
func DecodeSpecs(data []byte) (*Specs, error) {
	s := &Specs{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decode specs: %w", err)
	}
	if s.Format != specsFormat {
		return nil, fmt.Errorf("decode specs: the format is %q, not %q", s.Format, specsFormat)
	}
	return s, nil
}

func (fs *FlowSpecs) add(f *Flow, g *Graph, path string, c Catalogue) {
	for _, n := range g.Nodes {
		at := bodyPath(path, n.ID)
		if t := n.SpecIn(c); t != nil {
			spec := specOf(f, n, t)
			if first := fs.Types[n.Type]; first == nil {
				fs.Types[n.Type] = spec
			} else if !reflect.DeepEqual(first, spec) {
				fs.Nodes[at] = spec
			}
		}
		if n.Body != nil {
			fs.add(f, n.Body, at, c)
		}
	}
}

// bodyPath returns the path of a node in the body of the composite at path.
func bodyPath(path, id string) string {
	if path == "" {
		return id
	}
	return path + "/" + id
}

// find returns the spec of a node; nil if there is none.
func (fs *FlowSpecs) find(path, typ string) *NodeSpec {
	if s := fs.Nodes[path]; s != nil {
		return s
	}
	return fs.Types[typ]
}

func specOf(f *Flow, n *Node, t *TypeSpec) *NodeSpec {
	ports := t.PortsOf(n)
	s := &NodeSpec{
		Version: t.Version, In: portSpecs(ports.In), Out: portSpecs(ports.Out), AnyIn: ports.AnyIn, AnyOut: ports.AnyOut,
		Context: contextUses()[t.ContextOf(n)], Composite: t.Composite, Branches: t.Branches, NewContext: t.NewContext, PassThrough: t.PassThrough, Inline: t.Inline,
		Uses: n.Uses != nil,
	}
	for _, run := range n.Runs {
		s.Runs = append(s.Runs, f.refOf(run))
	}
	return s
}

// contextUses returns the names of the uses of a context, by ContextUse.
func contextUses() []string { return []string{"", "read", "write"} }

// refOf returns the reference by which a flow uses another.
func (f *Flow) refOf(used *Flow) string {
	for _, u := range f.Uses {
		if u.Flow == used {
			return u.Ref
		}
	}
	return Self
}

func portSpecs(ports []Port) []PortSpec {
	var out []PortSpec
	for _, p := range ports {
		out = append(out, PortSpec{Name: p.Name, Type: p.Type, Required: p.Required, Lazy: p.Lazy, Many: p.Many, Exclusive: p.Exclusive, Branch: p.Branch})
	}
	return out
}

func portsFrom(specs []PortSpec) []Port {
	out := make([]Port, 0, len(specs))
	for _, p := range specs {
		out = append(out, Port{Name: p.Name, Type: p.Type, Required: p.Required, Lazy: p.Lazy, Many: p.Many, Exclusive: p.Exclusive, Branch: p.Branch})
	}
	return out
}

// typeSpec returns the spec of a node type with only what a record needs.
func (s *NodeSpec) typeSpec(name string) *TypeSpec {
	return &TypeSpec{
		Name: name, Version: s.Version,
		Ports:     Ports{In: portsFrom(s.In), Out: portsFrom(s.Out), AnyIn: s.AnyIn, AnyOut: s.AnyOut},
		Context:   ContextUse(max(0, slices.Index(contextUses(), s.Context))),
		Composite: s.Composite, Branches: s.Branches, NewContext: s.NewContext, PassThrough: s.PassThrough, Inline: s.Inline,
	}
}

// SpecIn returns the spec of the node's type: the recorded one for a node from
// RecordedFlows.Read, otherwise that of the catalogue; nil if there is none.
func (n *Node) SpecIn(c Catalogue) *TypeSpec {
	if n.recorded != nil || c == nil {
		return n.recorded
	}
	return c.Lookup(n.Type)
}
