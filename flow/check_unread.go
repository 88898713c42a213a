package flow

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/flow/expr"
)

// recordRead records which inputs an expression in the node's settings or body reads.
func (it *nodeDraft) recordRead(r expr.Ref) {
	if len(r.Path) == 0 {
		it.readsAll = true
		return
	}
	if it.reads == nil {
		it.reads = make(map[string]bool)
	}
	it.reads[r.Path[0]] = true
}

// checkUnread reports inputs of a node that nothing reads, because a misspelt name would
// otherwise be ignored silently.
func (s *scope) checkUnread(it *nodeDraft) {
	if s.l.AlreadyValid || !it.ports.AnyIn || it.spec.Reads == nil || it.readsAll {
		return
	}
	names, all := it.spec.Reads(it.node.With)
	if all {
		return
	}
	known := func(name string) bool {
		return it.reads[name] || slices.Contains(names, name) || slices.Contains(it.inNames(), name) || name == "context" && it.usesContext()
	}
	reported := map[string]bool{}
	report := func(name string, at func(msg, hint string)) {
		if name == "" || known(name) || reported[name] {
			return
		}
		reported[name] = true
		candidates := slices.Concat(it.inNames(), names)
		for n := range it.reads {
			candidates = append(candidates, n)
		}
		slices.Sort(candidates)
		hint := fmt.Sprintf("read it as %s, or remove it; to order nodes use after:", expr.Join("inputs", name))
		if best := NearestName(name, candidates); best != "" {
			hint = "did you mean " + best + "?"
		}
		at(fmt.Sprintf("nothing in %s (%s) reads the input %s", it.node.ID, it.node.Type, quote(name)), hint)
	}
	in := it.val.get("in")
	if in != nil && in.kind == kindObject {
		for i := range in.members {
			m := &in.members[i]
			report(m.key, func(msg, hint string) { s.l.reportAtKey(m, CodeUnreadInput, msg, hint) })
		}
	}
	for _, k := range it.in {
		report(k.edge.ToPort, func(msg, hint string) { s.l.reportAt(k.at, CodeUnreadInput, msg, hint) })
	}
}
