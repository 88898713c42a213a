package flow

import (
	"fmt"
	"slices"
)

// noError is the way out through any port but "error". It is no name that a branch may have.
const noError = "\x00"

// branchChoice is the ways out of a node of which something needs one: branch ports, "error", or noError.
type branchChoice struct {
	node     *nodeDraft
	branches []string // sorted, and never changed
}

// maxChoices limits the choices remembered for a node, and the branches of one. A forgotten choice only means that a
// node that can never run is not reported, and that two writers are not known to exclude each other.
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
		if bad == nil || isOpenConflict(bad) {
			it.requiredChoices = need
			continue
		}
		a, b := bad[0], bad[1]
		s.l.reportAtKey(it.key, CodeUnreachable, fmt.Sprintf("%s can never run: it requires both %s and %s", it.node.ID, a, b), unreachableHint(it))
	}
}

// String returns the way out as files write it.
func (c branchChoice) String() string {
	if c.branches[0] == noError {
		return c.node.node.ID + " without an error"
	}
	return c.node.node.ID + "." + c.branches[0]
}

// isOpenConflict reports whether one of two contradictory choices leaves several ways out. Only the check of
// writers uses that: flows with a node that such choices keep from running are valid.
func isOpenConflict(bad []branchChoice) bool {
	return len(bad[0].branches) > 1 || len(bad[1].branches) > 1
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
		own = []branchChoice{{k.from, []string{"error"}}}
	case k.isBranch():
		own = []branchChoice{{k.from, []string{k.edge.FromPort}}}
	case fails[k.from]:
		own = []branchChoice{{k.from, []string{noError}}}
	default:
		return need
	}
	need, _ = mergeChoices(need, own, nil)
	return need
}

// sharedBranches returns the ways out of one node that fulfil both of two choices.
func sharedBranches(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	var out []string
	for _, list := range [][2][]string{{a, b}, {b, a}} {
		for _, branch := range list[0] {
			if slices.Contains(list[1], branch) || branch != "error" && slices.Contains(list[1], noError) {
				out = append(out, branch)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// eitherBranch returns the ways out of one node that fulfil one of two choices, nil for too many.
func eitherBranch(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxChoices {
		return nil
	}
	return out
}

func compareChoices(a, b branchChoice) int { return a.node.rank - b.node.rank }

// mergeChoices merges two sorted sets, of which both hold, and finds a contradiction, if possible one that leaves each side one way out.
func mergeChoices(a, b, bad []branchChoice) (set, conflict []branchChoice) {
	if len(b) == 0 {
		return a, bad
	}
	if len(a) == 0 {
		return b, bad
	}
	all := append(slices.Clip(slices.Clone(a)), b...)
	slices.SortStableFunc(all, compareChoices)
	out := all[:1]
	for _, c := range all[1:] {
		last := &out[len(out)-1]
		if last.node != c.node {
			out = append(out, c)
			continue
		}
		both := sharedBranches(last.branches, c.branches)
		if len(both) > 0 {
			last.branches = both
			continue
		}
		if found := conflictOf(*last, c); bad == nil || isOpenConflict(bad) && !isOpenConflict(found) {
			bad = found
		}
	}
	if len(out) > maxChoices {
		out = out[len(out)-maxChoices:]
	}
	return out, bad
}

// conflictOf returns two contradictory choices in the order in which they are reported.
func conflictOf(a, b branchChoice) []branchChoice {
	first, second := a.branches[0], b.branches[0]
	if first == noError || second != noError && second < first {
		return []branchChoice{b, a}
	}
	return []branchChoice{a, b}
}

// commonChoices returns the choices that hold whichever of the edges is taken.
func commonChoices(links []*edgeDraft, fails map[*nodeDraft]bool) []branchChoice {
	set := links[0].needs(fails)
	for _, k := range links[1:] {
		if len(set) == 0 {
			return nil
		}
		other := k.needs(fails)
		var common []branchChoice
		for _, c := range set {
			i, found := slices.BinarySearchFunc(other, c, compareChoices)
			if !found {
				continue
			}
			if either := eitherBranch(c.branches, other[i].branches); either != nil {
				common = append(common, branchChoice{c.node, either})
			}
		}
		set = common
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
