package flow

import (
	"fmt"
	"slices"
	"strings"
)

// scope is one graph being read: the root, or the body of a composite.
type scope struct {
	l      *loader
	parent *scope
	owner  *nodeDraft // the composite whose body this is, nil at the root
	depth  int
	items  []*nodeDraft
	byID   map[string]*nodeDraft
	links  []*edgeDraft
	// edgePorts lists the ports of each node that entries of `edges` go to.
	edgePorts map[string][]string
	graph     Graph
}

// nodeDraft is one node being read.
type nodeDraft struct {
	key  *member
	val  *value
	node *Node
	// spec is nil if the type is unknown; then ports are not checked.
	spec  *TypeSpec
	ports Ports
	// alreadyValid: the flow was validated before, maybe by an earlier version.
	alreadyValid bool
	body         *scope
	// reads are the inputs that settings and the body read; readsAll says that one of them
	// reads inputs as a whole.
	reads    map[string]bool
	readsAll bool
	// in and out are the edges, after all are known; index is the position in the file and
	// rank the position in flow order.
	in, out         []*edgeDraft
	index, rank     int
	requiredChoices []branchChoice
	origin          string
}

// edgeDraft is one edge being read.
type edgeDraft struct {
	edge     *Edge
	from, to *nodeDraft
	at       *value
	seq      int
	hasID    bool // the file sets its id
	portal   bool
}

// readGraph reads, checks and orders nodes, edges and outputs of one scope.
func (l *loader) readGraph(v *value, parent *scope, owner *nodeDraft) *scope {
	s := &scope{l: l, parent: parent, owner: owner, byID: map[string]*nodeDraft{}, edgePorts: map[string][]string{}}
	if parent != nil {
		s.depth = parent.depth + 1
	}
	what := "a flow"
	if owner != nil {
		what = "the body of " + owner.node.ID
	}
	f := fields{l, v, what}
	if v.get("nodes") == nil {
		l.reportAt(v, CodeEmptyFlow, what+" has no nodes", "add a node under nodes:")
	}
	nodes := f.entries("nodes", "nodes")
	if n := v.get("nodes"); n != nil && len(nodes) == 0 && (n.kind == kindObject || n.kind == kindNull) {
		l.reportAt(n, CodeEmptyFlow, what+" has no nodes", "add a node under nodes:")
	}
	edges := s.readEdges(v.get("edges"))
	for i := range nodes {
		s.addNode(&nodes[i])
	}
	s.graph.Outputs = s.outputNames(f)
	if parent == nil {
		l.flow.Outputs = s.graph.Outputs // a flow that uses itself has them as ports
	}
	for _, it := range s.items {
		s.readNode(it)
	}
	for _, it := range s.items {
		s.bindInputs(it)
		s.bindAfter(it)
		s.bindContext(it)
	}
	s.joinPortals()
	s.mergeEdges(edges)
	s.attachEdges()
	s.order()
	s.check()
	s.bindOutputs(f)
	s.sortGraph()
	return s
}

// addNode registers the id.
func (s *scope) addNode(m *member) {
	ok := s.l.nodeID(m)
	it := &nodeDraft{alreadyValid: s.l.AlreadyValid, key: m, val: m.val, index: len(s.items), node: &Node{ID: m.key, Pos: s.l.pos(int(m.line), int(m.col))}}
	if s.byID[m.key] == nil {
		s.byID[m.key] = it
	}
	if ok || m.key != "" {
		s.items = append(s.items, it)
	}
}

// ids lists the node ids of the scope.
func (s *scope) ids() []string {
	out := make([]string, 0, len(s.items))
	for _, it := range s.items {
		out = append(out, it.node.ID)
	}
	return out
}

// find resolves a node id at byte off of v; for an unknown id it reports a problem and
// returns nil.
func (s *scope) find(id string, v *value, off int) *nodeDraft {
	if it := s.byID[id]; it != nil {
		return it
	}
	for p := s.parent; p != nil; p = p.parent {
		if p.byID[id] != nil {
			s.l.reportInText(v, off, CodeOuterReference, fmt.Sprintf("%s is a node outside the body of %s", id, s.owner.node.ID),
				fmt.Sprintf("pass its value through the in: of %s and read inputs.NAME here", s.owner.node.ID))
			return nil
		}
	}
	s.l.reportInText(v, off, CodeUnknownNode, fmt.Sprintf("the node %s does not exist here", quote(id)), s.l.suggest(id, s.ids))
	return nil
}

// usesContext reports whether the node uses a context itself.
func (it *nodeDraft) usesContext() bool {
	if it.spec == nil {
		return false
	}
	if it.alreadyValid && it.spec.ContextFor != nil { // edges of stored flows are not checked
		return true
	}
	return it.spec.ContextOf(it.node) != ContextNone || it.spec.Composite
}

// outPort returns the output port of that name.
func (it *nodeDraft) outPort(name string) (Port, bool) {
	if it.spec == nil {
		return Port{Name: name, Type: TypeAny}, true
	}
	for _, p := range it.ports.Out {
		if p.Name == name {
			return p, true
		}
	}
	switch {
	case name == "error":
		return Port{Name: name, Type: TypeObject}, true
	case name == "context" && it.usesContext():
		return Port{Name: name, Type: TypeContext}, true
	case it.body != nil && it.ports.AnyOut:
		for _, b := range it.body.graph.Outputs {
			if b.Name == name {
				return Port{Name: name, Type: TypeAny}, true
			}
		}
		return Port{}, false
	}
	return Port{Name: name, Type: TypeAny}, it.ports.AnyOut
}

// inPort returns the input port of that name.
func (it *nodeDraft) inPort(name string) (Port, bool) {
	if it.spec == nil {
		return Port{Name: name, Type: TypeAny}, true
	}
	for _, p := range it.ports.In {
		if p.Name == name {
			return p, true
		}
	}
	if name == "context" && it.usesContext() {
		return Port{Name: name, Type: TypeContext}, true
	}
	return Port{Name: name, Type: TypeAny}, it.ports.AnyIn
}

// outNames lists the output ports, inNames the input ports.
func (it *nodeDraft) outNames() []string {
	names := portNames(it.ports.Out)
	if it.body != nil && it.ports.AnyOut {
		for _, b := range it.body.graph.Outputs {
			if !slices.Contains(names, b.Name) { // branches may have outputs of one name
				names = append(names, b.Name)
			}
		}
	}
	return append(names, "error")
}

func (it *nodeDraft) inNames() []string { return portNames(it.ports.In) }

func portNames(ports []Port) []string {
	names := make([]string, 0, len(ports)+1)
	for _, p := range ports {
		names = append(names, p.Name)
	}
	return names
}

// source resolves NODE.PORT; for an unknown one it reports a problem and returns nil.
func (s *scope) source(id, port string, v *value, off int) *nodeDraft {
	it := s.find(id, v, off)
	if it == nil {
		return nil
	}
	if _, ok := it.outPort(port); !ok {
		s.l.reportInText(v, off, CodeUnknownPort, fmt.Sprintf("%s (%s) has no output port %s; it has %s", id, it.node.Type, quote(port), strings.Join(it.outNames(), ", ")),
			s.l.nearest(port, it.outNames))
		return nil
	}
	return it
}

// add records an edge.
func (s *scope) add(from *nodeDraft, fromPort string, to *nodeDraft, toPort string, at *value) *edgeDraft {
	k := &edgeDraft{
		from: from, to: to, at: at, seq: len(s.links),
		edge: &Edge{From: from.node.ID, FromPort: fromPort, To: to.node.ID, ToPort: toPort, Pos: s.l.posOf(at)},
	}
	k.edge.Kind = EdgeControl
	if toPort != "" {
		p, _ := to.inPort(toPort)
		k.edge.Kind = kindOfEdge(p.Type)
	}
	s.links = append(s.links, k)
	return k
}

func kindOfEdge(t PortType) EdgeKind {
	switch t {
	case TypeContext:
		return EdgeContext
	case TypeTools:
		return EdgeTools
	default:
		return EdgeData
	}
}

// ends returns the two ends of an edge as files write them.
func (e *Edge) ends() (from, to string) {
	from, to = e.From, e.To
	if e.FromPort != "" {
		from += "." + e.FromPort
	}
	if e.ToPort != "" {
		to += "." + e.ToPort
	}
	return from, to
}
