package flow

import (
	"container/heap"
	"slices"
	"strings"
)

// order sorts the nodes topologically, ties by id, and reports cycles. Cycles
// are cut where they are reported, so that the rest is checked as well.
func (s *scope) order() {
	o := newSorter(s.items)
	for cycles := 0; ; cycles++ {
		o.drain()
		if len(o.sorted) == len(s.items) {
			break
		}
		if cycles == maxCycles {
			o.sorted = append(o.sorted, s.unplaced(o.placed, len(o.sorted))...)
			break
		}
		for _, k := range s.cycle(o.placed, o.cut) {
			o.cut[k] = true
			o.release(k)
		}
	}
	s.items = o.sorted
}

// sorter is a topological sort under way.
type sorter struct {
	sorted []*nodeDraft
	ready  byID
	// waits counts, by an item's index, the edges still to come; placed marks
	// the sorted ones.
	waits  []int
	placed []bool
	cut    map[*edgeDraft]bool
}

func newSorter(items []*nodeDraft) *sorter {
	o := &sorter{
		sorted: make([]*nodeDraft, 0, len(items)), waits: make([]int, len(items)),
		placed: make([]bool, len(items)), cut: map[*edgeDraft]bool{},
	}
	for _, it := range items {
		o.waits[it.index] = len(it.in)
		if len(it.in) == 0 {
			o.ready = append(o.ready, it)
		}
	}
	heap.Init(&o.ready)
	return o
}

// drain places every node that waits for nothing.
func (o *sorter) drain() {
	for o.ready.Len() > 0 {
		it, _ := heap.Pop(&o.ready).(*nodeDraft)
		o.placed[it.index], it.rank = true, len(o.sorted)
		o.sorted = append(o.sorted, it)
		for _, k := range it.out {
			if !o.cut[k] {
				o.release(k)
			}
		}
	}
}

// release tells the target of an edge that it need not wait for it.
func (o *sorter) release(k *edgeDraft) {
	o.waits[k.to.index]--
	if o.waits[k.to.index] == 0 && !o.placed[k.to.index] {
		heap.Push(&o.ready, k.to)
	}
}

// maxCycles is how many cycles of one scope are told apart; finding one costs a
// look at every node.
const maxCycles = 50

// unplaced lists the nodes that still wait, by id.
func (s *scope) unplaced(placed []bool, rank int) []*nodeDraft {
	rest := slices.DeleteFunc(slices.Clone(s.items), func(it *nodeDraft) bool { return placed[it.index] })
	slices.SortFunc(rest, func(a, b *nodeDraft) int { return strings.Compare(a.node.ID, b.node.ID) })
	for i, it := range rest {
		it.rank = rank + i
	}
	return rest
}

// cycle finds a circle among the nodes not yet placed, reports it, and returns
// the edges whose loss opens it.
func (s *scope) cycle(placed []bool, cut map[*edgeDraft]bool) []*edgeDraft {
	var start *nodeDraft
	for _, it := range s.items {
		if !placed[it.index] && (start == nil || it.node.ID < start.node.ID) {
			start = it
		}
	}
	// Walking against the edges from any node that waits stays among nodes that
	// wait, so it comes round.
	seen := map[*nodeDraft]int{}
	var walk []*edgeDraft
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
	var open []*edgeDraft
	for _, k := range last.to.in {
		if k.from == last.from && !cut[k] {
			open = append(open, k)
		}
	}
	return open
}

// waitsFor is the edge from the first node, by id, that a node waits for.
func waitsFor(it *nodeDraft, placed []bool, cut map[*edgeDraft]bool) *edgeDraft {
	var best *edgeDraft
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

func (s *scope) reportCycle(walk []*edgeDraft) {
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
	s.l.reportAt(last.at, CodeCycle, "the nodes wait for each other: "+b.String(), "repeat with a loop node; its body runs again with the values it carries")
}

// byID is a heap of nodes by id.
type byID []*nodeDraft

func (h byID) Len() int           { return len(h) }
func (h byID) Less(i, j int) bool { return h[i].node.ID < h[j].node.ID }
func (h byID) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *byID) Push(x any) {
	if it, ok := x.(*nodeDraft); ok {
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
