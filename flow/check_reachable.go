package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// branchChoice is a way out of a node that something depends on: a branch port, "error", or
// "ok" for every other output.
type branchChoice struct {
	node   *nodeDraft
	branch string
}

// maxChoices limits the choices remembered for a node. A forgotten choice only means that a
// node that can never run is not reported.
const maxChoices = 64

// checkReachable reports nodes that can never run because they depend on contradictory
// choices. It sets needs, the choices of every run that reaches the node.
func (s *scope) checkReachable() {
	fails := map[*nodeDraft]bool{} // nodes with a connected error port
	for _, k := range s.links {
		if k.edge.FromPort == "error" {
			fails[k.from] = true
		}
	}
	for _, it := range s.items {
		need, bad := s.needs(it, fails)
		if bad == nil {
			it.requiredChoices = need
			continue
		}
		a, b := bad[0], bad[1]
		s.l.reportAtKey(it.key, CodeUnreachable, fmt.Sprintf("%s can never run: it requires both %s and %s", it.node.ID, a, b), unreachableHint(it))
	}
}

// String returns the way out as files write it.
func (c branchChoice) String() string {
	if c.branch == "ok" {
		return c.node.node.ID + " without an error"
	}
	return c.node.node.ID + "." + c.branch
}

func unreachableHint(it *nodeDraft) string {
	if it.node.Join == "all" {
		return "join: any runs it after any branch that was taken"
	}
	return "combine the branches with a merge node"
}

// needs returns the choices that a node depends on; two contradictory ones are returned as
// bad.
func (s *scope) needs(it *nodeDraft, fails map[*nodeDraft]bool) (need []branchChoice, bad []branchChoice) {
	if len(it.in) == 0 {
		return nil, nil
	}
	var control, all []*edgeDraft
	required := map[string][]*edgeDraft{}
	for _, k := range it.in {
		all = append(all, k)
		if k.edge.ToPort == "" {
			control = append(control, k)
		} else if p, _ := it.inPort(k.edge.ToPort); p.Required && !k.edge.Partial {
			required[p.Name] = append(required[p.Name], k)
		}
	}
	if !slices.ContainsFunc(it.in, func(k *edgeDraft) bool { return !k.edge.Guarded }) {
		return nil, nil
	}
	join := func(more []branchChoice) {
		need, bad = mergeChoices(need, more, bad)
	}
	for _, name := range it.inNames() {
		if required[name] != nil {
			join(commonChoices(required[name], fails))
		}
	}
	switch {
	case it.node.Join == "all":
		for _, k := range control {
			join(k.needs(fails))
		}
	case len(control) > 0:
		join(commonChoices(control, fails))
	case len(required) == 0:
		join(commonChoices(all, fails))
	}
	return need, bad
}

// needs returns the choices of an edge: those of its source, and its way out.
func (k *edgeDraft) needs(fails map[*nodeDraft]bool) []branchChoice {
	need := k.from.requiredChoices
	var own []branchChoice
	switch {
	case k.edge.FromPort == "error":
		own = []branchChoice{{k.from, "error"}}
	case k.isBranch():
		own = []branchChoice{{k.from, k.edge.FromPort}}
	case fails[k.from]:
		own = []branchChoice{{k.from, "ok"}}
	default:
		return need
	}
	need, _ = mergeChoices(need, own, nil)
	return need
}

// contradictory reports whether two ways out of one node exclude each other.
func contradictory(a, b branchChoice) bool {
	if a.node != b.node || a.branch == b.branch {
		return false
	}
	return a.branch == "error" || b.branch == "error" || (a.branch != "ok" && b.branch != "ok")
}

func compareChoices(a, b branchChoice) int {
	return cmp.Or(a.node.rank-b.node.rank, cmp.Compare(a.branch, b.branch))
}

// mergeChoices merges two sorted sets and finds a contradiction.
func mergeChoices(a, b, bad []branchChoice) (set, conflict []branchChoice) {
	if len(b) == 0 {
		return a, bad
	}
	if len(a) == 0 {
		return b, bad
	}
	out := append(slices.Clip(slices.Clone(a)), b...)
	slices.SortFunc(out, compareChoices)
	out = slices.Compact(out)
	for i := 1; i < len(out) && bad == nil; i++ {
		if contradictory(out[i-1], out[i]) {
			bad = []branchChoice{out[i-1], out[i]}
		}
	}
	if len(out) > maxChoices {
		out = out[len(out)-maxChoices:]
	}
	return out, bad
}

// commonChoices returns the choices that all edges share.
func commonChoices(links []*edgeDraft, fails map[*nodeDraft]bool) []branchChoice {
	set := links[0].needs(fails)
	for _, k := range links[1:] {
		if len(set) == 0 {
			return nil
		}
		other := k.needs(fails)
		set = slices.DeleteFunc(slices.Clone(set), func(c branchChoice) bool {
			_, found := slices.BinarySearchFunc(other, c, compareChoices)
			return !found
		})
	}
	return set
}

// writtenKeys returns the state keys that a node, or its body, may write.
func (it *nodeDraft) writtenKeys() []string {
	if it.spec == nil {
		return nil
	}
	var keys []string
	if it.spec.Writes != nil {
		keys = slices.Clone(it.spec.Writes(it.node.With))
	}
	if it.body != nil {
		for _, inner := range it.body.items {
			keys = append(keys, inner.writtenKeys()...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkWriters reports, for each key without a reducer, two nodes that write it in no
// defined order.
func (s *scope) checkWriters() {
	writers := map[string][]*nodeDraft{}
	var keys []string
	for _, it := range s.items {
		for _, k := range it.writtenKeys() {
			if s.l.state[k] != ReduceNone {
				continue
			}
			if writers[k] == nil {
				keys = append(keys, k)
			}
			writers[k] = append(writers[k], it)
		}
	}
	for _, k := range keys {
		s.checkKey(k, writers[k])
	}
}

// maxComparedWriters is the number of following writers that one is compared with if they
// are on exclusive branches.
const maxComparedWriters = 32

// checkKey compares each writer with the next ones in flow order, until one is ordered
// after it. The order of the others follows from that one.
func (s *scope) checkKey(key string, ws []*nodeDraft) {
	for i, a := range ws {
		for _, b := range ws[i+1 : min(len(ws), i+1+maxComparedWriters)] {
			if s.leadsTo(a, b) {
				break
			}
			if _, bad := mergeChoices(a.requiredChoices, b.requiredChoices, nil); bad != nil {
				continue
			}
			s.l.reportAtKey(b.key, CodeUnorderedWriters, fmt.Sprintf("%s and %s both write state.%s and neither is ordered after the other", a.node.ID, b.node.ID, key),
				fmt.Sprintf("declare state: {%s: {reducer: ...}}, or order them with after:", key))
			return
		}
	}
}

// leadsTo reports whether there is a path between two nodes. It visits only nodes between
// them in flow order.
func (s *scope) leadsTo(a, b *nodeDraft) bool {
	seen := map[*nodeDraft]bool{a: true}
	stack := []*nodeDraft{a}
	for len(stack) > 0 {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, k := range it.out {
			if k.to == b {
				return true
			}
			if k.to.rank < b.rank && !seen[k.to] {
				seen[k.to] = true
				stack = append(stack, k.to)
			}
		}
	}
	return false
}
