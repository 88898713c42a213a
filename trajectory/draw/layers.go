package draw

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/internal/layered"
	"github.com/weir-run/weir/trajectory"
)

// vertex is a block in a layer, a point at which lines pass a layer, or one at which lines enter or leave the panel.
// Lines of one relation to one target share their points.
type vertex struct {
	block int // index into the panel's blocks, or passing, entry or exit
	layer int
	w, h  float64
	x     float64 // its middle
	up    []weightedLink
	down  []weightedLink
}

// The kinds of vertices that are not blocks.
const (
	passing = -1 - iota
	entry   // lines from the previous panel
	exit    // lines to the next panel
)

// weightedLink connects a vertex to one of a neighbouring layer, with a weight.
type weightedLink struct {
	to     int
	weight float64
}

// segment is one drawn piece of connectors, from a vertex to one in the next layer.
type segment struct {
	from, to   int
	connectors []connector // number of connectors, at least one
}

// layers is a panel divided into layers, so that every segment leads to the next layer.
type layers struct {
	vertices []vertex
	rows     [][]int
	segments []segment
	in, out  int // the entry and exit vertices, -1 for none
}

// newLayers assigns blocks to layers by the longest path to them, and divides connectors into segments. A connector may
// begin at entry or end at exit.
func newLayers(blocks []*block, ties []connector) *layers {
	l := &layers{vertices: make([]vertex, len(blocks), len(blocks)+2), in: -1, out: -1}
	for i, b := range blocks {
		l.vertices[i] = vertex{block: i, w: b.w, h: b.h}
	}
	for _, t := range ties {
		if t.card >= 0 { // it leaves next to the card
			l.vertices[t.from].w = blocks[t.from].w + 2*besideWidth
		}
		if t.from == entry && l.in < 0 {
			l.in = l.add(vertex{block: entry, w: passWidth})
		}
		if t.to == exit && l.out < 0 {
			l.out = l.add(vertex{block: exit, w: passWidth})
		}
	}
	l.assignLayers(ties)
	shared := map[passKey]int{}
	known := map[segmentKey]int{}
	for _, t := range ties {
		l.route(t, shared, known)
	}
	for i := range l.vertices {
		v := &l.vertices[i]
		for len(l.rows) <= v.layer {
			l.rows = append(l.rows, nil)
		}
		l.rows[v.layer] = append(l.rows[v.layer], i)
	}
	for _, row := range l.rows { // without crossings this order stays
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(l.sortClass(a), l.sortClass(b)) })
	}
	return l
}

func (l *layers) add(v vertex) int {
	l.vertices = append(l.vertices, v)
	return len(l.vertices) - 1
}

// ends returns the vertices of a connector.
func (l *layers) ends(t connector) (from, to int) {
	from, to = t.from, t.to
	if from == entry {
		from = l.in
	}
	if to == exit {
		to = l.out
	}
	return from, to
}

// assignLayers sets the layer of each vertex: entry is above all, exit below.
func (l *layers) assignLayers(ties []connector) {
	next := make([][]int, len(l.vertices))
	led := make([]bool, len(l.vertices))
	for _, t := range ties {
		from, to := l.ends(t)
		next[from] = append(next[from], to)
		led[to] = true
	}
	for i := range l.vertices {
		if l.in >= 0 && i != l.in && !led[i] {
			next[l.in] = append(next[l.in], i)
		}
	}
	last := 0
	for i, depth := range layered.Depths(next) {
		l.vertices[i].layer = depth
		if i != l.out {
			last = max(last, depth)
		}
	}
	if l.out >= 0 {
		l.vertices[l.out].layer = last + 1
	}
}

// passKey identifies the point at which lines of one relation to one vertex pass a layer.
type passKey struct {
	to       int
	relation trajectory.Relation
	layer    int
}

// segmentKey identifies a segment; card is the card at which it leaves a block.
type segmentKey struct{ from, to, card int }

// passWidth is the width of a point at which lines pass a layer, pixels.
const passWidth = 12

// besideWidth is the width of lines that leave a block next to its cards, pixels.
const besideWidth = 12

func (l *layers) route(t connector, shared map[passKey]int, known map[segmentKey]int) {
	at, to := l.ends(t)
	for layer := l.vertices[at].layer + 1; layer < l.vertices[to].layer; layer++ {
		key := passKey{to, t.relation, layer}
		place, ok := shared[key]
		if !ok {
			place = l.add(vertex{block: passing, layer: layer, w: passWidth})
			shared[key] = place
		}
		l.addSegment(t, at, place, known)
		at = place
	}
	l.addSegment(t, at, to, known)
}

// addSegment adds a segment unless it exists.
func (l *layers) addSegment(t connector, from, to int, known map[segmentKey]int) {
	w := segmentKey{from, to, -1}
	if l.vertices[from].block >= 0 {
		w.card = t.card
	}
	if i, ok := known[w]; ok {
		l.segments[i].connectors = append(l.segments[i].connectors, t)
		return
	}
	known[w] = len(l.segments)
	l.segments = append(l.segments, segment{from: from, to: to, connectors: []connector{t}})
	weight := edgePull(t.relation)
	if l.vertices[from].block < 0 && l.vertices[to].block < 0 {
		weight *= 10 // passing lines are straight
	}
	l.vertices[from].down = append(l.vertices[from].down, weightedLink{to, weight})
	l.vertices[to].up = append(l.vertices[to].up, weightedLink{from, weight})
}

// mainPull is the weight of edges between steps, which are drawn straight.
const mainPull = 1000

// edgePull returns the weight of an edge.
func edgePull(r trajectory.Relation) float64 {
	switch r {
	case trajectory.Triggers, trajectory.HasConclusion, trajectory.Generates:
		return mainPull
	case trajectory.ContinuesTo:
		return 0.2
	default:
		return 1
	}
}

// order orders each row so that few segments cross.
func (l *layers) order() {
	n := len(l.vertices)
	d := layered.Drawing{Rows: l.rows, Up: make([][]int, n), Down: make([][]int, n), Class: make([]int, n)}
	for i := range l.vertices {
		d.Up[i], d.Down[i], d.Class[i] = targets(l.vertices[i].up), targets(l.vertices[i].down), l.sortClass(i)
	}
	d.Order()
	l.rows = d.Rows
}

func targets(links []weightedLink) []int {
	out := make([]int, len(links))
	for i, k := range links {
		out[i] = k.to
	}
	return out
}

// sortClass puts steps to the left of data, and passing lines to the right of both.
func (l *layers) sortClass(v int) int {
	switch {
	case l.vertices[v].block < 0:
		return 2
	case slices.ContainsFunc(l.vertices[v].up, func(k weightedLink) bool { return k.weight >= mainPull }):
		return 0
	}
	return 1
}
