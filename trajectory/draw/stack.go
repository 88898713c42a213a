package draw

import (
	"fmt"
	"slices"
	"strings"
)

// maxLanes is the maximum number of lanes next to each other; more are stacked.
const maxLanes = 3

// lane is a chain of blocks that each follow only the previous one.
type lane struct {
	blocks []int
	edges  []int  // relation of each block except the first to the previous one
	from   string // the predecessors of the first block
	to     string // the successors of the last block
}

// stackLanes joins many lanes with the same predecessors and successors into one block, such as the items of a list
// that were processed in parallel. The steps of a lane become children of its first step.
func (f *blockRound) stackLanes(makers []int) {
	alike := map[string][]lane{}
	var keys []string
	for _, l := range f.findLanes() {
		key := l.from + " to " + l.to
		if alike[key] == nil {
			keys = append(keys, key)
		}
		alike[key] = append(alike[key], l)
	}
	gone := make([]bool, len(f.blocks))
	for _, key := range keys {
		if len(alike[key]) > maxLanes {
			for i, l := range alike[key] {
				f.mergeLane(l, makers, gone)
				if i > 0 {
					f.blocks[alike[key][0].blocks[0]].addCards(f.blocks[l.blocks[0]].cards)
					gone[l.blocks[0]] = true
				}
			}
		}
	}
	var blocks []block
	var shelf []bool
	for i := range f.blocks {
		if !gone[i] {
			blocks, shelf = append(blocks, f.blocks[i]), append(shelf, f.isHeader[i])
		}
	}
	f.blocks, f.isHeader = blocks, shelf
}

// findLanes finds the lanes that begin where more than maxLanes blocks follow the same one.
func (f *blockRound) findLanes() []lane {
	into, out := f.blockEdges()
	first := map[string][]int{} // blocks by predecessor
	var order []string
	for b := range f.blocks {
		if key := f.edgeNames(into[b], true); key != "" && !f.isHeader[b] {
			if first[key] == nil {
				order = append(order, key)
			}
			first[key] = append(first[key], b)
		}
	}
	var lanes []lane
	for _, key := range order {
		if len(first[key]) <= maxLanes {
			continue
		}
		for _, b := range first[key] {
			lanes = append(lanes, f.followLane(b, key, into, out))
		}
	}
	return lanes
}

// followLane returns the lane of a first block.
func (f *blockRound) followLane(b int, from string, into, out [][]int) lane {
	l := lane{blocks: []int{b}, from: from}
	for {
		next := -1
		for _, e := range out[b] {
			to := f.places[f.index[f.edges[e].Target]].block
			if next >= 0 && to != next {
				next = -1
				break
			}
			next = to
		}
		if next < 0 || slices.ContainsFunc(into[next], func(e int) bool { return f.places[f.index[f.edges[e].Source]].block != b }) {
			l.to = f.edgeNames(out[b], false)
			return l
		}
		l.blocks, l.edges = append(l.blocks, next), append(l.edges, into[next][0])
		b = next
	}
}

// blockEdges returns for each block the edges into and out of its steps.
func (f *blockRound) blockEdges() (into, out [][]int) {
	into, out = make([][]int, len(f.blocks)), make([][]int, len(f.blocks))
	for i, e := range f.edges {
		from, to := f.places[f.index[e.Source]].block, f.places[f.index[e.Target]].block
		if from != to && !f.nodes[f.index[e.Target]].Type.IsData() {
			into[to], out[from] = append(into[to], i), append(out[from], i)
		}
	}
	return into, out
}

// edgeNames returns the other ends of edges and their relations.
func (f *blockRound) edgeNames(edges []int, from bool) string {
	var out []string
	for _, i := range edges {
		e := f.edges[i]
		end := e.Target
		if from {
			end = e.Source
		}
		out = append(out, fmt.Sprint(e.Relationship, " ", end))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// mergeLane adds the blocks of a lane to its first one.
func (f *blockRound) mergeLane(l lane, makers []int, gone []bool) {
	first := &f.blocks[l.blocks[0]]
	shift := 0 // index of the previous block's card
	for i, b := range l.blocks[1:] {
		edge := l.edges[i]
		e := f.edges[edge]
		top := f.blocks[b].cards[0].node
		above := shift + f.places[f.index[e.Source]].card
		shift = len(first.cards)
		first.addCards(f.blocks[b].cards)
		c := &first.cards[shift]
		c.parent, c.relation, c.lane = above, e.Relationship, true
		makers[top] = edge
		gone[b] = true
	}
}
