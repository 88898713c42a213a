package flow

import (
	"fmt"
	"slices"
	"strings"
)

// branchesKey is the setting that has the bodies of a composite with Branches.
const branchesKey = "branches"

// minBranches is the number of branches below which a choice between them has no meaning.
const minBranches = 2

// bodyKey returns the setting that has the graph, or graphs, of a composite.
func (s *TypeSpec) bodyKey() string {
	if s.Branches {
		return branchesKey
	}
	return "body"
}

// BranchOf returns the branch that an iteration of the node runs, counted from 1 over all
// of the node's iterations; nil if the node has no branches. Each expansion of such a node
// runs every branch once, in order.
func (n *Node) BranchOf(iteration int) *Branch {
	if len(n.Branches) == 0 || iteration < 1 {
		return nil
	}
	return &n.Branches[(iteration-1)%len(n.Branches)]
}

// addBranch appends a branch and extends Body with its graph.
func (n *Node) addBranch(name string, g *Graph) {
	if n.Body == nil {
		n.Body = &Graph{index: make(map[string]*Node)}
	}
	n.Branches = append(n.Branches, Branch{Name: name, Graph: *g})
	n.Body.Nodes = append(n.Body.Nodes, g.Nodes...)
	n.Body.Edges = append(n.Body.Edges, g.Edges...)
	n.Body.Outputs = append(n.Body.Outputs, g.Outputs...)
	for _, inner := range g.Nodes {
		n.Body.index[inner.ID] = inner
	}
}

// readBranches reads the graphs of a composite with branches.
func (s *scope) readBranches(it *nodeDraft, v *value) {
	if v.kind != kindObject {
		s.l.reportAt(v, CodeBadValue, "branches must be an object of bodies by name; got "+v.kind.String(), "write branches: {NAME: {nodes: ..., outputs: ...}, NAME: ...}")
		return
	}
	if len(v.members) < minBranches {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s (%s) has %d branches; it needs at least %d", it.node.ID, it.spec.Name, len(v.members), minBranches), "add a branch")
	}
	sorted := slices.Clone(v.members)
	slices.SortStableFunc(sorted, func(a, b member) int { return strings.Compare(a.key, b.key) })
	it.body = &scope{l: s.l, parent: s, owner: it, depth: s.depth + 1, byID: map[string]*nodeDraft{}, edgePorts: map[string][]string{}}
	for i := range sorted {
		m := &sorted[i]
		s.l.portName(m, "a branch")
		f, ok := s.l.object(m.val, "a branch")
		if !ok {
			continue
		}
		f.rejectUnknown("nodes", "edges", "outputs")
		branch := s.l.readGraph(m.val, s, it)
		s.addBranch(it, m.key, branch)
	}
	if it.node.Body != nil {
		it.body.graph = *it.node.Body
	}
}

// addBranch adds what was read of a branch to its composite.
func (s *scope) addBranch(it *nodeDraft, name string, branch *scope) {
	for _, inner := range branch.items {
		if it.body.byID[inner.node.ID] != nil {
			s.l.reportAtKey(inner.key, CodeDuplicateID, fmt.Sprintf("the node id %s is used in two branches of %s; a path names the node without its branch", quote(inner.node.ID), it.node.ID), "rename one of them")
			continue
		}
		it.body.byID[inner.node.ID] = inner
		it.body.items = append(it.body.items, inner)
	}
	it.node.addBranch(name, &branch.graph)
}

// haveNodes reports whether a setting of a recorded node has graphs as its members.
func haveNodes(v *value) bool {
	list := members(v)
	return len(list) > 0 && !slices.ContainsFunc(list, func(m member) bool { return m.val.get("nodes") == nil })
}

// AllowEffects is the setting of a composite with branches that lets them act outside the
// run.
const AllowEffects = "allowEffects"

// checkBranchEffects refuses branches that may change something outside the run: the
// change stays if another branch wins.
func (s *scope) checkBranchEffects(it *nodeDraft) {
	if !it.spec.Branches || it.node.With[AllowEffects] == true {
		return
	}
	for i := range it.node.Branches {
		b := &it.node.Branches[i]
		if path := actsOutside(s.l.cat, &b.Graph, nil); path != "" {
			s.l.reportAt(it.val.get("with").get(branchesKey).get(b.Name), CodeRaceEffect,
				fmt.Sprintf("the node %s of the branch %s may change something outside the run, which stays changed if another branch of %s wins", path, b.Name, it.node.ID),
				"move the node behind "+it.node.ID+", or set "+AllowEffects+": true")
		}
	}
}

// ActsOutside returns the path of a node of the flow, or of the flows that it runs, that may
// change something outside the run; "" if there is none.
func ActsOutside(f *Flow, types Catalogue) string { return actsOutside(types, &f.Graph, nil) }

func actsOutside(types Catalogue, g *Graph, seen []*Flow) string {
	for _, n := range g.Nodes {
		if sp := types.Lookup(n.Type); sp != nil && sp.actsOutside(n.With) {
			return n.ID
		}
		if n.Body != nil {
			if inner := actsOutside(types, n.Body, seen); inner != "" {
				return n.ID + "/" + inner
			}
		}
		for _, used := range n.flowsRun() {
			if slices.Contains(seen, used) {
				continue
			}
			if inner := actsOutside(types, &used.Graph, append(seen, used)); inner != "" {
				return n.ID + ">" + inner
			}
		}
	}
	return ""
}

// actsOutside reports whether a node of the type with such settings may itself change
// something outside the run.
func (s *TypeSpec) actsOutside(with map[string]any) bool {
	if s.ActsOutside != nil {
		return s.ActsOutside(with)
	}
	return !s.Pure && !s.Replays && !s.Composite && s.Uses == nil
}

// flowsRun lists the flows that the node runs, or may run.
func (n *Node) flowsRun() []*Flow {
	if n.Uses != nil {
		return append([]*Flow{n.Uses}, n.Runs...)
	}
	return n.Runs
}
