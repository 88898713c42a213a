package flow

import (
	"container/heap"
	"slices"
	"strings"
)

// order sorts the nodes topologically, ties by id, and reports cycles. Cycles
// are cut where they are reported, so that the rest is checked as well.
func (s *scope) order() {
	waits := make([]int, len(s.items))
	cut := map[*link]bool{}
	cycles := 0
	for _, it := range s.items {
		waits[it.index] = len(it.in)
	}
	ready := &byID{}
	for _, it := range s.items {
		if waits[it.index] == 0 {
			*ready = append(*ready, it)
		}
	}
	heap.Init(ready)
	sorted := make([]*item, 0, len(s.items))
	placed := make([]bool, len(s.items))
	release := func(k *link) {
		if waits[k.to.index]--; waits[k.to.index] == 0 && !placed[k.to.index] {
			heap.Push(ready, k.to)
		}
	}
	for {
		for ready.Len() > 0 {
			it, _ := heap.Pop(ready).(*item)
			placed[it.index] = true
			it.rank = len(sorted)
			sorted = append(sorted, it)
			for _, k := range it.out {
				if !cut[k] {
					release(k)
				}
			}
		}
		if len(sorted) == len(s.items) {
			break
		}
		if cycles++; cycles > maxCycles {
			sorted = append(sorted, s.unplaced(placed, len(sorted))...)
			break
		}
		for _, k := range s.cycle(placed, cut) {
			cut[k] = true
			release(k)
		}
	}
	s.items = sorted
}

// maxCycles is how many cycles of one scope are told apart; finding one costs a
// look at every node.
const maxCycles = 50

// unplaced lists the nodes that still wait, by id.
func (s *scope) unplaced(placed []bool, rank int) []*item {
	rest := slices.DeleteFunc(slices.Clone(s.items), func(it *item) bool { return placed[it.index] })
	slices.SortFunc(rest, func(a, b *item) int { return strings.Compare(a.node.ID, b.node.ID) })
	for i, it := range rest {
		it.rank = rank + i
	}
	return rest
}

// cycle finds a circle among the nodes not yet placed, reports it, and returns
// the edges whose loss opens it.
func (s *scope) cycle(placed []bool, cut map[*link]bool) []*link {
	var start *item
	for _, it := range s.items {
		if !placed[it.index] && (start == nil || it.node.ID < start.node.ID) {
			start = it
		}
	}
	// Walking against the edges from any node that waits stays among nodes that
	// wait, so it comes round.
	seen := map[*item]int{}
	var walk []*link
	at := start
	for {
		if i, ok := seen[at]; ok {
			walk = walk[i:]
			break
		}
		seen[at] = len(walk)
		k := waitsFor(at, placed, cut)
		walk = append(walk, k)
		at = k.from
	}
	slices.Reverse(walk) // now each edge leads to the next one's source
	first := 0
	for i, k := range walk {
		if k.from.node.ID < walk[first].from.node.ID {
			first = i
		}
	}
	walk = append(walk[first:len(walk):len(walk)], walk[:first]...)
	s.reportCycle(walk)
	last := walk[len(walk)-1]
	var open []*link
	for _, k := range last.to.in {
		if k.from == last.from && !cut[k] {
			open = append(open, k)
		}
	}
	return open
}

// waitsFor is the edge from the first node, by id, that a node waits for.
func waitsFor(it *item, placed []bool, cut map[*link]bool) *link {
	var best *link
	for _, k := range it.in {
		if placed[k.from.index] || cut[k] {
			continue
		}
		if best == nil || k.from.node.ID < best.from.node.ID {
			best = k
		}
	}
	return best
}

func (s *scope) reportCycle(walk []*link) {
	const most = 12
	var b strings.Builder
	for i, k := range walk {
		if i == most {
			b.WriteString("... -> ")
			break
		}
		b.WriteString(k.from.node.ID + " -> ")
	}
	b.WriteString(walk[0].from.node.ID)
	last := walk[len(walk)-1]
	s.l.at(last.at, CodeCycle, "the nodes wait for each other: "+b.String(), "repeat with a loop node; its body runs again with the values it carries")
}

// byID is a heap of nodes by id.
type byID []*item

func (h byID) Len() int           { return len(h) }
func (h byID) Less(i, j int) bool { return h[i].node.ID < h[j].node.ID }
func (h byID) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *byID) Push(x any) {
	if it, ok := x.(*item); ok {
		*h = append(*h, it)
	}
}

// Pop implements heap.Interface.
func (h *byID) Pop() any {
	old := *h
	it := old[len(old)-1]
	*h = old[:len(old)-1]
	return it
}
