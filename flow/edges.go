package flow

import (
	"fmt"
	"slices"
	"strings"
)

// edgeEntry is one entry of `edges:` before its ends are resolved.
type edgeEntry struct {
	val      *value
	id       string
	from, to *value
	metadata map[string]any
}

// readEdges reads the entries of `edges:` and records their target ports.
func (s *scope) readEdges(v *value) []edgeEntry {
	if v == nil || v.kind == kindNull {
		return nil
	}
	if v.kind != kindList {
		s.l.reportAt(v, CodeBadValue, "edges must be a list of {id, from, to, metadata}; got "+v.kind.String(), "")
		return nil
	}
	out := make([]edgeEntry, 0, len(v.items))
	for _, e := range v.items {
		if x, ok := s.readEdge(e); ok {
			out = append(out, x)
		}
	}
	return out
}

func (s *scope) readEdge(e *value) (edgeEntry, bool) {
	f, ok := s.l.object(e, "an edge")
	if !ok {
		return edgeEntry{}, false
	}
	f.rejectUnknown("id", "from", "to", "metadata")
	x := edgeEntry{val: e, id: f.text("id"), from: e.get("from"), to: e.get("to")}
	if len(x.id) > MaxEdgeID {
		s.l.reportAt(e.get("id"), CodeBadID, fmt.Sprintf("the id of an edge has at most %d bytes", MaxEdgeID), "")
	}
	if m := e.get("metadata"); m != nil && m.kind != kindNull {
		if x.metadata, ok = m.any().(map[string]any); !ok {
			s.l.reportAt(m, CodeBadValue, "metadata must be an object; got "+m.kind.String(), "")
		}
	}
	for _, end := range []struct {
		name string
		v    *value
	}{{"from", x.from}, {"to", x.to}} {
		if end.v == nil || end.v.kind != kindText || end.v.text == "" {
			at := e
			if end.v != nil {
				at = end.v
			}
			s.l.reportAt(at, CodeBadEdge, fmt.Sprintf("an edge must have %s: a node, or node.port", end.name), "")
			return edgeEntry{}, false
		}
	}
	if id, port, ok := strings.Cut(x.to.text, "."); ok {
		s.edgePorts[id] = append(s.edgePorts[id], port)
	}
	return x, true
}

// mergeEdges matches entries of `edges:` with the edges that they describe, and adds the
// other entries as new edges.
func (s *scope) mergeEdges(entries []edgeEntry) {
	if len(entries) == 0 {
		return
	}
	implied := make(map[[2]string][]*edgeDraft, len(s.links))
	for _, k := range s.links {
		from, to := k.edge.ends()
		implied[[2]string{from, to}] = append(implied[[2]string{from, to}], k)
	}
	for _, e := range entries {
		ends := [2]string{e.from.text, e.to.text}
		var k *edgeDraft
		if same := implied[ends]; len(same) > 0 {
			k, implied[ends] = same[0], same[1:]
			k.at = e.val
			k.edge.Pos = s.l.posOf(e.val)
		} else if k = s.connectEntry(e); k == nil {
			continue
		}
		if e.id != "" {
			k.edge.ID, k.hasID = e.id, true
		}
		k.edge.Metadata = e.metadata
	}
}

// connectEntry creates the edge of an entry.
func (s *scope) connectEntry(e edgeEntry) *edgeDraft {
	toID, toPort, data := strings.Cut(e.to.text, ".")
	fromID, fromPort, hasPort := strings.Cut(e.from.text, ".")
	from, to := s.find(fromID, e.from, 0), s.find(toID, e.to, 0)
	if from == nil || to == nil {
		return nil
	}
	if data && !hasPort {
		s.l.reportAt(e.from, CodeBadEdge, fmt.Sprintf("an edge to the port %s must come from a port; %s is a node", e.to.text, fromID), listCandidates("it has ", from.outNames()))
		return nil
	}
	if hasPort && s.source(fromID, fromPort, e.from, 0) == nil {
		return nil
	}
	if data {
		if _, ok := to.inPort(toPort); !ok {
			s.l.reportAt(e.to, CodeUnknownPort, s.unknownInputHint(to, toPort), s.l.nearest(toPort, to.inNames))
			return nil
		}
		if to.ports.AnyIn && !IsPortName(toPort) {
			s.l.reportAt(e.to, CodeBadID, fmt.Sprintf("%s is not a valid name for a port: %s", quote(toPort), portNameRule), "")
			return nil
		}
	}
	return s.add(from, fromPort, to, toPort, e.val)
}

// attachEdges adds the edges to their nodes and gives each edge without an id its default
// id.
func (s *scope) attachEdges() {
	for _, k := range s.links {
		k.from.out = append(k.from.out, k)
		k.to.in = append(k.to.in, k)
	}
	ids := make(map[string]*edgeDraft, len(s.links))
	for _, k := range s.links {
		if !k.hasID {
			continue
		}
		if first := ids[k.edge.ID]; first != nil {
			at := k.at
			if id := at.get("id"); id != nil {
				at = id
			}
			s.l.reportAt(at, CodeDuplicateID, fmt.Sprintf("two edges have the id %s", quote(k.edge.ID)), "rename one")
		}
		ids[k.edge.ID] = k
	}
	taken := map[string]int{}
	for _, k := range s.links {
		if !k.hasID {
			s.nameEdge(k, ids, taken)
		}
	}
}

// nameEdge gives an edge its default id, with a number if that id is taken; taken remembers
// the last number of each id.
func (s *scope) nameEdge(k *edgeDraft, ids map[string]*edgeDraft, taken map[string]int) {
	base := k.edge.ID
	if base == "" {
		from, to := k.edge.ends()
		base = from + "->" + to
	}
	id, n := base, max(taken[base], 1)
	for ids[id] != nil {
		n++
		id = fmt.Sprintf("%s#%d", base, n)
	}
	if n > 1 {
		taken[base] = n
	}
	k.edge.ID, ids[id] = id, k
}

// sortGraph puts nodes and edges into flow order.
func (s *scope) sortGraph() {
	s.graph.Nodes = make([]*Node, len(s.items))
	s.graph.index = make(map[string]*Node, len(s.items))
	for i, it := range s.items {
		s.graph.Nodes[i] = it.node
		s.graph.index[it.node.ID] = it.node
	}
	slices.SortFunc(s.links, compareLinks)
	s.graph.Edges = make([]*Edge, len(s.links))
	for i, k := range s.links {
		s.graph.Edges[i] = k.edge
	}
}

// compareLinks orders edges by target, port and source; into a port that collects values,
// in file order.
func compareLinks(a, b *edgeDraft) int {
	if a.to != b.to {
		return a.to.rank - b.to.rank
	}
	if c := strings.Compare(a.edge.ToPort, b.edge.ToPort); c != 0 {
		return c
	}
	p, _ := a.to.inPort(a.edge.ToPort)
	if a.edge.ToPort == "" || a.edge.Partial || b.edge.Partial || (!p.Many && !p.Exclusive) {
		if c := strings.Compare(a.edge.From, b.edge.From); c != 0 {
			return c
		}
		if c := strings.Compare(a.edge.FromPort, b.edge.FromPort); c != 0 {
			return c
		}
	}
	return a.seq - b.seq
}

// Node returns the node with that id in this scope, nil if there is none. On a graph from
// Parse, Load or Build it takes constant time.
func (g *Graph) Node(id string) *Node {
	if g.index != nil {
		return g.index[id]
	}
	for _, n := range g.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}
