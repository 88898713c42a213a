package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// check validates the ordered graph of a scope.
func (s *scope) check() {
	for _, it := range s.items {
		if it.spec != nil {
			s.checkPorts(it)
			s.checkRequired(it)
			s.checkUnread(it)
			s.checkErrorPort(it)
			s.checkView(it)
		}
	}
	s.checkContexts()
	s.checkReachable()
	s.checkWriters()
}

// checkView refuses keys of a node's view that the strategy of the flow's context does not
// read. It is called once the flow's context is read. A context that comes by a port, or from
// the run that starts the flow, is known only when the node runs.
func (s *scope) checkView(it *nodeDraft) {
	v, of := it.val.get("with").get("view"), s.l.flow.Context.View
	if v == nil || v.get("strategy") != nil || of == (View{}) || it.val.get("context") != nil {
		return
	}
	if slices.ContainsFunc(it.in, func(k *edgeDraft) bool { return k.edge.ToPort == "context" }) {
		return
	}
	s.l.checkViewKeys(v, cmp.Or(of.Strategy, DefaultStrategy), ", which is that of the flow's context")
}

// checkErrorPort refuses onError together with a connected error port, which would handle the same
// failure.
func (s *scope) checkErrorPort(it *nodeDraft) {
	if !it.node.OnError.Handled || s.l.AlreadyValid {
		return
	}
	for _, k := range s.links {
		if k.from == it && k.edge.FromPort == "error" {
			s.l.reportAt(it.val.get("onError"), CodePortConflict, fmt.Sprintf("%s handles its failure twice: with onError, and with an edge from its port error to %s", it.node.ID, k.to.node.ID),
				"remove onError, or the edges from the port error")
			return
		}
	}
}

// checkPorts validates the edges and values of each port of a node.
func (s *scope) checkPorts(it *nodeDraft) {
	slices.SortStableFunc(it.in, func(a, b *edgeDraft) int { return a.seq - b.seq })
	byPort := make(map[string][]*edgeDraft, len(it.in))
	var order []string
	for _, k := range it.in {
		p := k.edge.ToPort
		if byPort[p] == nil {
			order = append(order, p)
		}
		byPort[p] = append(byPort[p], k)
	}
	for _, name := range order {
		links := byPort[name]
		if name == "" {
			s.checkDuplicates(links)
			continue
		}
		p, _ := it.inPort(name)
		s.checkPort(it, p, links)
	}
}

// checkDuplicates reports duplicate control edges.
func (s *scope) checkDuplicates(links []*edgeDraft) {
	seen := make(map[string]bool, len(links))
	for _, k := range links {
		from, _ := k.edge.ends()
		if seen[from] {
			s.l.reportAt(k.at, CodeDuplicateEdge, fmt.Sprintf("%s is after %s twice", k.to.node.ID, from), "remove one")
		}
		seen[from] = true
	}
}

func (s *scope) checkPort(it *nodeDraft, p Port, links []*edgeDraft) {
	whole := links[:0:0]
	for _, k := range links {
		if !k.edge.Partial {
			whole = append(whole, k)
			s.checkTypes(k, p)
		}
	}
	if len(whole) == 0 {
		return
	}
	if i := slices.IndexFunc(it.node.In, func(b Binding) bool { return b.Name == p.Name }); i >= 0 {
		s.l.reportAt(whole[0].at, CodePortConflict, fmt.Sprintf("the port %s of %s has both a value and an edge from %s", p.Name, it.node.ID, sourceName(whole[0])), "keep one of them")
	}
	if p.Many || p.Exclusive || p.Type == TypeContext {
		return
	}
	if a, b := conflictingLinks(whole); b != nil {
		if sourceName(a) == sourceName(b) {
			s.l.reportAt(b.at, CodeDuplicateEdge, fmt.Sprintf("%s goes to the port %s of %s twice", sourceName(a), p.Name, it.node.ID), "remove one")
			return
		}
		s.l.reportAt(b.at, CodePortConflict, fmt.Sprintf("the port %s of %s takes one value; both %s and %s may arrive", p.Name, it.node.ID, sourceName(a), sourceName(b)),
			"combine them with a merge node, or let them leave different branches of one node")
	}
}

func sourceName(k *edgeDraft) string {
	from, _ := k.edge.ends()
	return from
}

// conflictingLinks finds two edges that may both be taken: edges that do not leave
// different branches of one node, or its error port and one other port.
func conflictingLinks(links []*edgeDraft) (a, b *edgeDraft) {
	seen := make(map[string]*edgeDraft, len(links))
	var branch, normal *edgeDraft // the first that leaves a branch, or a port other than error
	for _, k := range links {
		if k.from != links[0].from {
			return links[0], k
		}
		if same := seen[k.edge.FromPort]; same != nil {
			return same, k
		}
		seen[k.edge.FromPort] = k
		switch {
		case k.edge.FromPort == "error":
		case normal != nil:
			return normal, k
		case k.isBranch():
			branch = cmp.Or(branch, k)
		case branch != nil:
			return branch, k
		default:
			normal = k
		}
	}
	return nil, nil
}

// isBranch reports whether the edge leaves a branch port.
func (k *edgeDraft) isBranch() bool {
	p, ok := k.from.outPort(k.edge.FromPort)
	return ok && p.Branch
}

// mutuallyExclusive reports whether at most one of two edges can be taken.
func mutuallyExclusive(a, b *edgeDraft) bool {
	_, second := conflictingLinks([]*edgeDraft{a, b})
	return second == nil
}

func (s *scope) checkTypes(k *edgeDraft, to Port) {
	from, ok := k.from.outPort(k.edge.FromPort)
	if !ok || Assignable(from.Type, to.Type) {
		return
	}
	hint := "convert it with a transform or template node"
	if from.Type == TypeContext || to.Type == TypeContext {
		hint = "connect a context port to a context port"
	}
	s.l.reportAt(k.at, CodeTypeMismatch, fmt.Sprintf("%s is %s; the port %s of %s takes %s", sourceName(k), from.Type, to.Name, k.to.node.ID, to.Type), hint)
}

// checkRequired reports unbound required ports.
func (s *scope) checkRequired(it *nodeDraft) {
	for _, p := range it.ports.In {
		if !p.Required || it.spec.Portal == "in" || s.isBound(it, p.Name) || slices.ContainsFunc(it.in, func(k *edgeDraft) bool { return k.edge.ToPort == p.Name }) {
			continue
		}
		s.l.reportAtKey(it.key, CodeMissingInput, fmt.Sprintf("%s (%s) needs a value for its port %s (%s)", it.node.ID, it.spec.Name, p.Name, p.Type),
			fmt.Sprintf("bind it: in: {%s: ...}", p.Name))
	}
}

// checkContexts follows each context from its origin and reports nodes that two different
// contexts may reach.
func (s *scope) checkContexts() {
	for _, it := range s.items {
		var edges []*edgeDraft
		for _, k := range it.in {
			if k.edge.Kind == EdgeContext && !k.edge.Partial {
				edges = append(edges, k)
			}
		}
		it.origin = "main"
		switch {
		case it.spec != nil && it.spec.NewContext:
			it.origin = it.node.ID
		case len(edges) > 0:
			it.origin = edges[0].contextOrigin()
		}
		for i, k := range edges {
			for _, earlier := range edges[:min(i, 8)] {
				a, b := earlier.contextOrigin(), k.contextOrigin()
				if k.edge.ToPort != earlier.edge.ToPort || a == b || a == "" || b == "" || mutuallyExclusive(earlier, k) {
					continue
				}
				s.l.reportAt(k.at, CodeAmbiguousContext, fmt.Sprintf("%s has two contexts: %s from %s and %s from %s", it.node.ID, contextName(a), earlier.from.node.ID, contextName(b), k.from.node.ID),
					"keep one, or let them leave different branches of one node")
				break
			}
		}
	}
}

// contextOrigin returns where the context on an edge was created, "" if that is unknown
// because the value came through a port of type any or out of a composite.
func (k *edgeDraft) contextOrigin() string {
	p, _ := k.from.outPort(k.edge.FromPort)
	if p.Type != TypeContext || k.from.spec == nil || k.from.spec.Composite {
		return ""
	}
	return k.from.origin
}

func contextName(origin string) string {
	if origin == "main" {
		return "the main one"
	}
	return "that of " + origin
}
