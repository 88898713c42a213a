package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// choice says that a node must leave by a branch for something to happen: its
// branch port, "error", or "ok" for every other way out.
type choice struct {
	node   *item
	branch string
}

// maxChoices bounds what is remembered of a node's needs; what is forgotten
// only lets a node that can never run pass.
const maxChoices = 64

// checkReachable reports nodes that can never run because what they need
// excludes itself. It.need are the choices every run that reaches a node makes.
func (s *scope) checkReachable() {
	fails := map[*item]bool{} // nodes whose error port is wired
	for _, k := range s.links {
		if k.edge.FromPort == "error" {
			fails[k.from] = true
		}
	}
	for _, it := range s.items {
		need, bad := s.needs(it, fails)
		if bad == nil {
			it.need = need
			continue
		}
		a, b := bad[0], bad[1]
		s.l.atKey(it.key, CodeUnreachable, fmt.Sprintf("%s can never run: it needs both %s and %s", it.node.ID, a, b), unreachableHint(it))
	}
}

// String is the way out as files write it.
func (c choice) String() string {
	if c.branch == "ok" {
		return c.node.node.ID + " without an error"
	}
	return c.node.node.ID + "." + c.branch
}

func unreachableHint(it *item) string {
	if it.node.Join == "all" {
		return "join: any runs it after whichever was taken"
	}
	return "bring the branches together with a merge node"
}

// needs are the choices on which a node depends; two that contradict each
// other come back as bad.
func (s *scope) needs(it *item, fails map[*item]bool) (need []choice, bad []choice) {
	if len(it.in) == 0 {
		return nil, nil
	}
	var control, all []*link
	required := map[string][]*link{}
	for _, k := range it.in {
		all = append(all, k)
		if k.edge.ToPort == "" {
			control = append(control, k)
		} else if p, _ := it.inPort(k.edge.ToPort); p.Required && !k.edge.Partial {
			required[p.Name] = append(required[p.Name], k)
		}
	}
	if !slices.ContainsFunc(it.in, func(k *link) bool { return !k.edge.Tested }) {
		return nil, nil
	}
	join := func(more []choice) {
		need, bad = merged(need, more, bad)
	}
	for _, name := range it.inNames() {
		if required[name] != nil {
			join(common(required[name], fails))
		}
	}
	switch {
	case it.node.Join == "all":
		for _, k := range control {
			join(k.needs(fails))
		}
	case len(control) > 0:
		join(common(control, fails))
	case len(required) == 0:
		join(common(all, fails))
	}
	return need, bad
}

// needs are the choices of an edge: those of its source, and its way out.
func (k *link) needs(fails map[*item]bool) []choice {
	need := k.from.need
	var own []choice
	switch {
	case k.edge.FromPort == "error":
		own = []choice{{k.from, "error"}}
	case k.isBranch():
		own = []choice{{k.from, k.edge.FromPort}}
	case fails[k.from]:
		own = []choice{{k.from, "ok"}}
	default:
		return need
	}
	need, _ = merged(need, own, nil)
	return need
}

// contradict reports whether two ways out of one node exclude each other.
func contradict(a, b choice) bool {
	if a.node != b.node || a.branch == b.branch {
		return false
	}
	return a.branch == "error" || b.branch == "error" || (a.branch != "ok" && b.branch != "ok")
}

func compareChoices(a, b choice) int {
	return cmp.Or(a.node.rank-b.node.rank, cmp.Compare(a.branch, b.branch))
}

// merged joins two sorted sets and looks for a contradiction.
func merged(a, b, bad []choice) (set, conflict []choice) {
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
		if contradict(out[i-1], out[i]) {
			bad = []choice{out[i-1], out[i]}
		}
	}
	if len(out) > maxChoices {
		out = out[len(out)-maxChoices:]
	}
	return out, bad
}

// common are the choices that all edges share.
func common(links []*link, fails map[*item]bool) []choice {
	set := links[0].needs(fails)
	for _, k := range links[1:] {
		if len(set) == 0 {
			return nil
		}
		other := k.needs(fails)
		set = slices.DeleteFunc(slices.Clone(set), func(c choice) bool {
			_, found := slices.BinarySearchFunc(other, c, compareChoices)
			return !found
		})
	}
	return set
}

// writes are the state keys a node may write, those of its body included.
func (it *item) writes() []string {
	if it.spec == nil {
		return nil
	}
	var keys []string
	if it.spec.Writes != nil {
		keys = slices.Clone(it.spec.Writes(it.node.With))
	}
	if it.body != nil {
		for _, inner := range it.body.items {
			keys = append(keys, inner.writes()...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkWriters reports, for each key without a reducer, two nodes that write it
// with neither after the other.
func (s *scope) checkWriters() {
	writers := map[string][]*item{}
	var keys []string
	for _, it := range s.items {
		for _, k := range it.writes() {
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

// nearWriters is how many writers after one are compared with it where they are
// on branches that exclude each other.
const nearWriters = 32

// checkKey compares each writer with the next ones in flow order, until one is
// ordered after it: the rest of the order follows from that one.
func (s *scope) checkKey(key string, ws []*item) {
	for i, a := range ws {
		for _, b := range ws[i+1 : min(len(ws), i+1+nearWriters)] {
			if s.leadsTo(a, b) {
				break
			}
			if _, bad := merged(a.need, b.need, nil); bad != nil {
				continue
			}
			s.l.atKey(b.key, CodeUnorderedWriters, fmt.Sprintf("%s and %s both write state.%s and neither is after the other", a.node.ID, b.node.ID, key),
				fmt.Sprintf("declare state: {%s: {reducer: ...}}, or order them with after:", key))
			return
		}
	}
}

// leadsTo reports whether there is a path between two nodes; it looks only at
// nodes between them in flow order.
func (s *scope) leadsTo(a, b *item) bool {
	seen := map[*item]bool{a: true}
	stack := []*item{a}
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
