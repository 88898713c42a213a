package flow

import (
	"fmt"
	"slices"
)

// NeverRetried reports whether `retry` leaves failures with an error code alone, whatever its
// key `on` lists: a cancellation, and a budget that is used up.
func NeverRetried(code string) bool { return code == "cancelled" || code == "budget_exceeded" }

// checkRetryCodes refuses codes of `retry: {on: ...}` with which the node never fails: they
// are misspelt, and the node would not be retried.
func (s *scope) checkRetryCodes(it *nodeDraft) {
	on := it.val.get("retry").get("on")
	if on == nil || len(it.node.Retry.On) == 0 {
		return
	}
	list := []*value{on}
	if on.kind == kindList {
		list = on.items
	}
	found := codeSet{cat: s.l.cat, seen: map[*Flow]bool{s.l.flow: true}}
	found.add(it.node)
	for _, v := range list {
		code, ok := v.asText()
		switch {
		case !ok || code == "":
		case NeverRetried(code):
			s.l.reportAt(v, CodeBadValue, fmt.Sprintf("retry never repeats a node that failed with %s", code), "remove it from on")
		case slices.Contains(found.codes, code):
		case !found.any:
			s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s (%s) never fails with the error code %s", it.node.ID, it.spec.Name, quote(code)), codeHint(code, found.codes))
		default: // a code of its own, unless it is one letter away from one that exists
			all := s.l.allCodes()
			if near := NearestName(code, all); near != "" && near != code && editDistance(code, near) == 1 {
				s.l.reportAt(v, CodeBadValue, fmt.Sprintf("there is no error code %s", quote(code)), codeHint(code, all))
			}
		}
	}
}

// codeHint names the code that was probably meant.
func codeHint(code string, codes []string) string {
	if near := NearestName(code, codes); near != "" {
		return "did you mean " + near + "?"
	}
	return "docs/errors.md lists the codes"
}

// allCodes lists the error codes of all node types under default settings.
func (l *loader) allCodes() []string {
	var out []string
	for _, sp := range l.cat.Specs() {
		if sp.Codes != nil {
			out = append(out, sp.Codes(nil)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// codeSet collects the error codes with which nodes may fail.
type codeSet struct {
	cat   Catalogue
	seen  map[*Flow]bool
	codes []string
	// any: a node may fail with any code.
	any bool
}

// add adds the codes of a node, of the nodes of its bodies, and of the flows that it may run.
func (c *codeSet) add(n *Node) {
	sp := c.cat.Lookup(n.Type)
	if sp == nil || sp.Codes == nil || sp.Uses != nil && n.Uses == nil && len(n.Runs) == 0 {
		c.any = true
		return
	}
	c.codes = append(c.codes, sp.Codes(n.With)...)
	c.addGraph(n.Body)
	for i := range n.Branches {
		c.addGraph(&n.Branches[i].Graph)
	}
	for _, f := range append([]*Flow{n.Uses}, n.Runs...) {
		if f != nil && !c.seen[f] {
			c.seen[f] = true
			c.addGraph(&f.Graph)
		}
	}
}

func (c *codeSet) addGraph(g *Graph) {
	if g == nil {
		return
	}
	for _, n := range g.Nodes {
		c.add(n)
	}
}
