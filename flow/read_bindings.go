package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow/expr"
)

// bindInputs converts a node's `in:` to edges and bindings.
func (s *scope) bindInputs(it *nodeDraft) {
	in := it.val.get("in")
	if in == nil || in.kind == kindNull || it.val.kind != kindObject {
		return
	}
	if in.kind != kindObject {
		s.l.reportAt(in, CodeBadValue, "in must be an object of values by port; got "+in.kind.String(), "")
		return
	}
	for i := range in.members {
		m := &in.members[i]
		p, ok := it.inPort(m.key)
		if !ok {
			s.l.reportAtKey(m, CodeUnknownPort, s.unknownInputHint(it, m.key), s.l.nearest(m.key, it.inNames))
			continue
		}
		if it.ports.AnyIn && !s.l.portName(m, "a port") {
			continue
		}
		s.bindPort(it, m, p)
	}
	slices.SortFunc(it.node.In, func(a, b Binding) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *scope) unknownInputHint(it *nodeDraft, name string) string {
	names := it.inNames()
	if len(names) == 0 {
		return fmt.Sprintf("%s (%s) has no input ports, so it has no port %s", it.node.ID, it.node.Type, quote(name))
	}
	return fmt.Sprintf("%s (%s) has no input port %s; it has %s", it.node.ID, it.node.Type, quote(name), strings.Join(names, ", "))
}

// bindPort binds one port: references become edges, everything else a binding.
func (s *scope) bindPort(it *nodeDraft, m *member, p Port) {
	v := m.val
	if r, ok := s.edgeReference(v); ok {
		s.addEdge(it, v, r, m.key)
		return
	}
	if v.kind == kindList && (p.Many || p.Exclusive) && len(v.items) > 0 {
		if s.addEdges(it, m) {
			return
		}
		if p.Exclusive {
			s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s.%s takes references, each exactly one {{ node.port }}", it.node.ID, m.key), "")
			return
		}
	}
	found := map[[2]string]*Edge{}
	s.addPartialEdges(it, v, m.key, found)
	it.node.In = append(it.node.In, Binding{Name: m.key, Value: v.any(), Pos: s.l.posOf(v)})
	s.checkLiteral(it, v, p)
}

// edgeReference returns the reference that a bound text is an edge of. A normal form has such
// texts only if an earlier version wrote it, for which quoted ports were no edges.
func (s *scope) edgeReference(v *value) (expr.Ref, bool) {
	r, ok := s.wholeReference(v)
	return r, ok && (!s.l.AlreadyValid || !strings.Contains(v.text, "["))
}

// wholeReference returns the reference of a text that is exactly one {{ node.port }}.
func (s *scope) wholeReference(v *value) (expr.Ref, bool) {
	if v.kind != kindText || !strings.HasPrefix(v.text, "{{") {
		return expr.Ref{}, false
	}
	t, err := expr.ParseTemplate(v.text)
	if err != nil || t.Program() == nil || len(t.Program().Path()) != 2 {
		return expr.Ref{}, false
	}
	r := t.Refs()[0]
	switch r.Root {
	case "state", "run", "inputs", "secrets", "context":
		return expr.Ref{}, false
	case "now":
		return r, s.byID["now"] != nil
	}
	return r, true
}

func (s *scope) addEdge(it *nodeDraft, v *value, r expr.Ref, port string) {
	if from := s.source(r.Root, r.Path[0], v, r.Offset); from != nil {
		s.add(from, r.Path[0], it, port, v)
	}
}

// addEdges creates an edge for every element of a list; false if one is not just a
// reference.
func (s *scope) addEdges(it *nodeDraft, m *member) bool {
	refs := make([]expr.Ref, len(m.val.items))
	for i, e := range m.val.items {
		r, ok := s.edgeReference(e)
		if !ok {
			return false
		}
		refs[i] = r
	}
	for i, e := range m.val.items {
		s.addEdge(it, e, refs[i], m.key)
	}
	return true
}

// addPartialEdges creates an edge for every node port that templates in a value read.
func (s *scope) addPartialEdges(it *nodeDraft, v *value, port string, found map[[2]string]*Edge) {
	switch v.kind {
	case kindList:
		for _, e := range v.items {
			s.addPartialEdges(it, e, port, found)
		}
	case kindObject:
		for _, m := range v.members {
			s.addPartialEdges(it, m.val, port, found)
		}
	case kindText:
		t := s.l.parseTemplate(v)
		if t == nil {
			return
		}
		for _, r := range t.Refs() {
			from := s.scopeRef(v, r)
			if from == nil {
				continue
			}
			e := found[[2]string{r.Root, r.Path[0]}]
			if e == nil {
				e = s.add(from, r.Path[0], it, port, v).edge
				e.Partial, e.Conditional = true, true
				found[[2]string{r.Root, r.Path[0]}] = e
			}
			e.Conditional = e.Conditional && r.Conditional
			e.Guarded = e.Guarded || r.IsHas && len(r.Path) == 1
		}
	default:
	}
}

// checkLiteral checks a bound value against the port's type as far as it is known before
// the run.
func (s *scope) checkLiteral(it *nodeDraft, v *value, p Port) {
	if v.kind == kindNull {
		if p.Required {
			s.l.reportAt(v, CodeMissingInput, fmt.Sprintf("the required port %s of %s is bound to null", p.Name, it.node.ID), "")
		}
		return
	}
	known := v.any()
	if v.kind == kindText && strings.Contains(v.text, "{{") {
		t, err := expr.ParseTemplate(v.text)
		if err != nil || t.Program() != nil {
			return
		}
	}
	if p.Many {
		p.Type = TypeList
	}
	if !fits(known, p.Type) {
		s.l.reportAt(v, CodeTypeMismatch, fmt.Sprintf("the port %s of %s takes %s; got %s", p.Name, it.node.ID, p.Type, v.kind), "")
	}
}

// bindAfter converts `after:` to control edges.
func (s *scope) bindAfter(it *nodeDraft) {
	v := it.val.get("after")
	if v == nil || v.kind == kindNull {
		return
	}
	list := []*value{v}
	if v.kind == kindList {
		list = v.items
	}
	for _, e := range list {
		if e.kind != kindText {
			s.l.reportAt(e, CodeBadValue, fmt.Sprintf("after must be a node, NODE.BRANCH, or a list of them; got %s", s.l.describe(e)), "")
			continue
		}
		id, branch, dotted := strings.Cut(e.text, ".")
		if !dotted {
			if from := s.find(id, e, 0); from != nil {
				s.add(from, "", it, "", e)
			}
			continue
		}
		if from := s.source(id, branch, e, 0); from != nil {
			s.add(from, branch, it, "", e)
		}
	}
}

// bindContext converts `context:` to a context edge.
func (s *scope) bindContext(it *nodeDraft) {
	v := it.val.get("context")
	if v == nil || v.kind == kindNull {
		return
	}
	id, ok := v.asText()
	if !ok || (!isIdentifier(id) && id != "main") {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("context must be main or the id of a node; got %s", s.l.describe(v)), "")
		return
	}
	if it.spec != nil {
		if !it.usesContext() && !slices.Contains(it.inNames(), "context") {
			s.l.reportAt(v, CodeUnknownPort, fmt.Sprintf("%s (%s) does not use a context", it.node.ID, it.node.Type), "remove the context key")
			return
		}
	}
	if id == "main" {
		return
	}
	if from := s.source(id, "context", v, 0); from != nil {
		s.add(from, "context", it, "context", v)
	}
}

// joinPortals adds the edge that a portal represents.
func (s *scope) joinPortals() {
	outs := map[string]*nodeDraft{}
	var ins []*nodeDraft
	for _, it := range s.items {
		if it.spec == nil || it.spec.Portal == "" {
			continue
		}
		name, _ := it.node.With["name"].(string)
		if name == "" {
			continue // the settings schema requires it
		}
		if it.spec.Portal == "in" {
			ins = append(ins, it)
			continue
		}
		if first := outs[name]; first != nil {
			s.l.reportAt(s.portalName(it), CodeDuplicatePortal, fmt.Sprintf("the portal %s has two sources, %s and %s", quote(name), first.node.ID, it.node.ID), "rename one")
			continue
		}
		outs[name] = it
	}
	names := make([]string, 0, len(outs))
	for n := range outs {
		names = append(names, n)
	}
	slices.SortFunc(ins, func(a, b *nodeDraft) int { return cmp.Compare(a.node.ID, b.node.ID) })
	for _, it := range ins {
		name, _ := it.node.With["name"].(string)
		if outs[name] == nil {
			s.l.reportAt(s.portalName(it), CodeUnknownPortal, fmt.Sprintf("no portalOut of this scope has the name %s", quote(name)),
				s.l.suggest(name, func() []string { return names }))
			continue
		}
		k := s.add(outs[name], "value", it, "value", s.portalName(it))
		k.edge.ID, k.portal = "portal:"+name, true
	}
}

// portalName returns the position of a portal's name.
func (s *scope) portalName(it *nodeDraft) *value {
	if v := it.val.get("with").get("name"); v != nil {
		return v
	}
	return it.val
}

// outputNames collects the names of the scope's outputs, so that a composite's
// ports are known before its expressions are read.
func (s *scope) outputNames(f fields) []Binding {
	var out []Binding
	for _, m := range f.entries("outputs", "values") {
		if s.l.portName(&m, "an output") {
			out = append(out, Binding{Name: m.key, Value: m.val.any(), Pos: s.l.posOf(m.val)})
		}
	}
	slices.SortFunc(out, func(a, b Binding) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// bindOutputs checks what the outputs read.
func (s *scope) bindOutputs(f fields) {
	for _, m := range f.members("outputs") {
		s.outputRefs(m.val)
	}
}

// outputTypes returns the port types of the outputs, as far as they are known.
func (s *scope) outputTypes(f fields) map[string]PortType {
	types := map[string]PortType{}
	for _, m := range f.members("outputs") {
		if t := s.outputType(m.val); t != TypeAny {
			types[m.key] = t
		}
	}
	return types
}

func (s *scope) outputType(v *value) PortType {
	switch v.kind {
	case kindBool:
		return TypeBool
	case kindInt, kindFloat:
		return TypeNumber
	case kindList:
		return TypeList
	case kindObject:
		return TypeObject
	case kindNull:
		return TypeAny
	case kindText:
	}
	if r, ok := s.wholeReference(v); ok {
		if from := s.byID[r.Root]; from != nil {
			if p, ok := from.outPort(r.Path[0]); ok {
				return p.Type
			}
		}
		return TypeAny
	}
	if t, err := expr.ParseTemplate(v.text); err != nil || t.Program() != nil {
		return TypeAny
	}
	return TypeText
}

func (s *scope) outputRefs(v *value) {
	switch v.kind {
	case kindList:
		for _, e := range v.items {
			s.outputRefs(e)
		}
	case kindObject:
		for _, m := range v.members {
			s.outputRefs(m.val)
		}
	case kindText:
		if t := s.l.parseTemplate(v); t != nil {
			for _, r := range t.Refs() {
				s.scopeRef(v, r)
			}
		}
	default:
	}
}
