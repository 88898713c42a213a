package flow

import (
	"container/heap"
	"slices"
	"strings"
)

// order sorts the nodes topologically, ties by id, and reports cycles. It cuts reported
// cycles, so that the rest is checked too.
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

// sorter is the state of a topological sort.
type sorter struct {
	sorted []*nodeDraft
	ready  byID
	// waits counts the remaining incoming edges by item index; placed marks the sorted
	// items.
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

// drain places every node without remaining incoming edges.
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

// release removes an edge from the count of its target.
func (o *sorter) release(k *edgeDraft) {
	o.waits[k.to.index]--
	if o.waits[k.to.index] == 0 && !o.placed[k.to.index] {
		heap.Push(&o.ready, k.to)
	}
}

// maxCycles is the maximum number of reported cycles of a scope; finding one visits every
// node.
const maxCycles = 50

// unplaced lists the nodes that are not placed, by id.
func (s *scope) unplaced(placed []bool, rank int) []*nodeDraft {
	rest := slices.DeleteFunc(slices.Clone(s.items), func(it *nodeDraft) bool { return placed[it.index] })
	slices.SortFunc(rest, func(a, b *nodeDraft) int { return strings.Compare(a.node.ID, b.node.ID) })
	for i, it := range rest {
		it.rank = rank + i
	}
	return rest
}

// cycle finds and reports a cycle among the nodes not yet placed, and returns the edges
// whose removal breaks it.
func (s *scope) cycle(placed []bool, cut map[*edgeDraft]bool) []*edgeDraft {
	var start *nodeDraft
	for _, it := range s.items {
		if !placed[it.index] && (start == nil || it.node.ID < start.node.ID) {
			start = it
		}
	}
	// Following edges backwards from an unplaced node visits only unplaced nodes, so it
	// ends in a cycle.
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

// waitsFor returns the remaining edge of a node from the first node, by id.
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
	s.l.reportAt(last.at, CodeCycle, "the nodes form a cycle: "+b.String(), "repeat with a loop node, which carries values from one iteration to the next")
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
