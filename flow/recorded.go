package flow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// RecordedFlows says where the flows of recorded runs are read from.
type RecordedFlows struct {
	// ByFingerprint returns the normal form of a flow by its fingerprint.
	ByFingerprint func(fingerprint string) ([]byte, error)
	// Specs are those that the runs were recorded with; nil if unknown.
	Specs *Specs
	// Types provides the node types that Specs lack; nil for none.
	Types Catalogue
}

// Read returns a flow of recorded runs as it was when it ran. It needs no node types: it
// takes nodes, order and edges from the normal form, parses no template or expression and
// validates nothing. The returned flow serves to read records, and cannot be run.
//
// Inferred lists the node types that neither Specs nor Types have, by name. Their ports are
// inferred from the edges.
func (r RecordedFlows) Read(fingerprint string) (f *Flow, inferred []string, err error) {
	x := &recordReader{RecordedFlows: r, flows: make(map[string]*Flow), inferred: make(map[string]bool)}
	if f, err = x.flow(fingerprint); err != nil {
		return nil, nil, err
	}
	for name := range x.inferred { // order: sorted below.
		inferred = append(inferred, name)
	}
	slices.Sort(inferred)
	return f, inferred, nil
}

// recordReader reads a flow and the flows that it uses.
type recordReader struct {
	RecordedFlows
	flows    map[string]*Flow // by fingerprint
	depth    int
	inferred map[string]bool
}

func (x *recordReader) flow(fingerprint string) (*Flow, error) {
	if f := x.flows[fingerprint]; f != nil {
		return f, nil
	}
	data, err := x.ByFingerprint(fingerprint)
	if err != nil {
		return nil, err
	}
	if x.depth++; x.depth > MaxUses+1 {
		return nil, fmt.Errorf("flow %s: flows use flows deeper than %d", fingerprint, MaxUses)
	}
	defer func() { x.depth-- }()
	l := newLoader(newSharedState(Source{AlreadyValid: true}, emptyCatalogue{}), "flow.json", bytes.TrimPrefix(data, []byte("\ufeff")))
	doc := l.parseJSON(l.src.data)
	if doc == nil || doc.kind != kindObject {
		return nil, fmt.Errorf("flow %s is not readable: %w", fingerprint, cmp.Or[error](l.firstProblem(), errors.New("it is not an object")))
	}
	f := l.settings(doc)
	f.File, f.cachedFingerprint, f.recorded = "", fingerprint, true
	for i := range members(doc.get("uses")) {
		m := &doc.get("uses").members[i]
		sum, _ := m.val.asText()
		used, err := x.flow(sum)
		if err != nil {
			return nil, fmt.Errorf("flow %s uses %s: %w", fingerprint, m.key, err)
		}
		f.Uses = append(f.Uses, Use{m.key, used})
	}
	g := &graphReader{x: x, l: l, f: f}
	if x.Specs != nil {
		g.specs = x.Specs.Flows[fingerprint]
	}
	if f.Graph, err = g.read(doc, ""); err != nil {
		return nil, fmt.Errorf("flow %s: %w", fingerprint, err)
	}
	x.flows[fingerprint] = f
	return f, nil
}

// firstProblem returns the first problem of the loader as an error, nil for none.
func (l *loader) firstProblem() error {
	if len(l.problems) == 0 {
		return nil
	}
	return errors.New(l.problems[0].Message)
}

// emptyCatalogue is a catalogue without types.
type emptyCatalogue struct{}

// Lookup implements Catalogue.
func (emptyCatalogue) Lookup(string) *TypeSpec { return nil }

// Specs implements Catalogue.
func (emptyCatalogue) Specs() []*TypeSpec { return nil }

// Settings implements Catalogue.
func (emptyCatalogue) Settings() *SettingsSchemas { return &SettingsSchemas{} }

func members(v *value) []member {
	if v == nil || v.kind != kindObject {
		return nil
	}
	return v.members
}

// graphReader reads the scopes of one recorded flow.
type graphReader struct {
	x     *recordReader
	l     *loader
	f     *Flow
	specs FlowSpecs
}

// read reads a scope whose composite has a path, "" for the root.
func (g *graphReader) read(v *value, path string) (out Graph, err error) {
	nodes := members(v.get("nodes"))
	out.Nodes = make([]*Node, 0, len(nodes))
	out.index = make(map[string]*Node, len(nodes))
	s := &scope{l: g.l}
	for i := range nodes {
		n, err := g.node(s, &nodes[i], bodyPath(path, nodes[i].key))
		if err != nil {
			return out, err
		}
		out.Nodes = append(out.Nodes, n)
		out.index[n.ID] = n
	}
	if v := v.get("edges"); v != nil {
		for _, e := range v.items {
			if out.Edges, err = g.edge(out.Edges, e); err != nil {
				return out, err
			}
		}
	}
	for i := range nodes {
		g.setRecordedSpec(&out, out.Nodes[i], bodyPath(path, nodes[i].key))
	}
	for _, e := range out.Edges {
		to := out.index[e.To]
		if out.index[e.From] == nil || to == nil {
			return out, fmt.Errorf("the edge %s connects nodes that do not exist", e.ID)
		}
		if e.ToPort != "" {
			e.Kind = kindOfEdge(to.portType(e.ToPort))
			// A port has edges or a binding, never both. The edges to a bound port are
			// those that its templates read.
			e.Partial = slices.ContainsFunc(to.In, func(b Binding) bool { return b.Name == e.ToPort })
		}
	}
	out.Outputs = g.bindings(v.get("outputs"))
	return out, nil
}

// portType returns the recorded type of an input port.
func (n *Node) portType(name string) PortType {
	for _, p := range n.recorded.Ports.In {
		if p.Name == name {
			return p.Type
		}
	}
	if name == "context" && (n.recorded.Context != ContextNone || n.recorded.Composite) {
		return TypeContext
	}
	return TypeAny
}

func (g *graphReader) node(s *scope, m *member, path string) (*Node, error) {
	l := g.l
	if m.val.kind != kindObject {
		return nil, fmt.Errorf("node %s is %s", path, m.val.kind)
	}
	f := fields{l, m.val, "a node"}
	n := &Node{
		ID: m.key, Type: f.text("type"), Description: f.text("description"), Join: cmp.Or(f.text("join"), "any"),
		Isolation: f.text("isolation"), InterruptBefore: f.flag("interruptBefore"), InterruptAfter: f.flag("interruptAfter"),
		In: g.bindings(m.val.get("in")), Pos: l.pos(int(m.line), int(m.col)),
	}
	for key, read := range map[string]func(*value){ // order: each sets a separate field.
		"budget":  func(v *value) { n.Spend = l.spend(v) },
		"retry":   func(v *value) { n.Retry = l.retry(v) },
		"timeout": func(v *value) { n.Timeout = l.timeout(v) },
		"onError": func(v *value) { n.OnError = l.onError(v) },
		"cache": func(v *value) {
			c := fields{l, v, "cache"}
			n.Cache = Cache{On: true, TTL: c.duration("ttl"), Key: c.text("key"), Shared: c.flag("shared")}
		},
	} {
		if v := m.val.get(key); v != nil {
			read(v)
		}
	}
	n.Artifacts = s.artifacts(&nodeDraft{key: m, val: m.val, node: n})
	for _, with := range members(m.val.get("with")) {
		if err := g.setting(n, &with, path); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// setting reads one setting of a node: the graphs of a composite, or plain data.
func (g *graphReader) setting(n *Node, with *member, path string) (err error) {
	switch {
	case with.key == "body" && with.val.get("nodes") != nil:
		n.Body = &Graph{}
		*n.Body, err = g.read(with.val, path)
		return err
	case with.key == branchesKey && haveNodes(with.val):
		for _, b := range members(with.val) {
			graph, err := g.read(b.val, path)
			if err != nil {
				return err
			}
			n.addBranch(b.key, &graph)
		}
		return nil
	}
	if n.With == nil {
		n.With = make(map[string]any)
	}
	n.With[with.key] = with.val.any()
	return nil
}

func (g *graphReader) bindings(v *value) []Binding {
	var out []Binding
	for _, m := range members(v) {
		out = append(out, Binding{Name: m.key, Value: m.val.any(), Pos: g.l.posOf(m.val)})
	}
	return out
}

func (g *graphReader) edge(list []*Edge, v *value) ([]*Edge, error) {
	if v.kind != kindObject {
		return nil, fmt.Errorf("an edge is %s", v.kind)
	}
	f := fields{g.l, v, "an edge"}
	e := &Edge{ID: f.text("id"), Kind: EdgeControl, Pos: g.l.posOf(v)}
	e.From, e.FromPort, _ = strings.Cut(f.text("from"), ".")
	e.To, e.ToPort, _ = strings.Cut(f.text("to"), ".")
	if m := v.get("metadata"); m != nil {
		e.Metadata, _ = m.any().(map[string]any)
	}
	return append(list, e), nil
}

// setRecordedSpec sets the recorded spec of a node.
func (g *graphReader) setRecordedSpec(scope *Graph, n *Node, path string) {
	spec := g.specs.find(path, n.Type)
	switch {
	case spec != nil:
		n.recorded = spec.typeSpec(n.Type)
	case g.x.Types != nil && g.x.Types.Lookup(n.Type) != nil:
		t := g.x.Types.Lookup(n.Type)
		if t.Uses != nil {
			g.use(n)
		}
		spec = specOf(g.f, n, t)
		n.recorded = spec.typeSpec(n.Type)
	default:
		g.x.inferred[n.Type] = true
		spec = inferSpec(scope, n)
		n.recorded = spec.typeSpec(n.Type)
	}
	if spec.Uses {
		g.use(n)
	}
	for _, ref := range spec.Runs {
		if used := g.f.UsedFlow(ref); used != nil {
			n.Runs = append(n.Runs, used)
		}
	}
}

// use finds the flow that the node runs.
func (g *graphReader) use(n *Node) {
	ref, _ := n.With["flow"].(string)
	n.Uses = g.f.UsedFlow(ref)
}

// inferSpec derives a node type from the edges of a node.
func inferSpec(scope *Graph, n *Node) *NodeSpec {
	s := &NodeSpec{AnyIn: true, AnyOut: true, Composite: n.Body != nil, Branches: n.Branches != nil}
	for _, e := range scope.Edges {
		if e.To == n.ID && e.ToPort == "context" {
			s.Context = "write"
			s.In = []PortSpec{{Name: "context", Type: TypeContext}}
		}
	}
	return s
}
