package draw

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// vertex is a node in a layer, or a place where lines pass it. Lines of one
// relation to one target share their places, so that they come together.
type vertex struct {
	node  int // index into round.nodes, -1 where lines pass, exit
	layer int
	w, h  float64
	x     float64 // its middle
	up    []link
	down  []link
}

// exit is where a round goes on to the next: all its leaves lead there.
const exit = -2

// link leads to a vertex of the layer above or below, and pulls at it.
type link struct {
	to     int
	weight float64
}

// strand is one drawn piece, from a vertex to one a layer below.
type strand struct {
	from, to int
	edge     trajectory.Edge // of the first that runs through it
	several  bool            // there are more
	last     bool            // it ends at the target
}

// layers is a round cut into layers so that all strands lead one layer down.
type layers struct {
	vertices []vertex
	rows     [][]int
	strands  []strand
}

// layered puts the nodes of a round into layers by the longest path that leads
// to them, and leads edges through the layers that they pass.
func layered(r round, leaves []trajectory.Edge) *layers {
	index := make(map[trajectory.ID]int, len(r.nodes))
	for i, n := range r.nodes {
		index[n.ID] = i
	}
	l := &layers{vertices: make([]vertex, len(r.nodes))}
	last := l.deepen(r, index)
	for i := range r.nodes {
		l.vertices[i].node, l.vertices[i].w, l.vertices[i].h = i, nodeWidth, boxHeight(r.nodes[i])
	}
	shared := map[pass]int{}
	known := map[[2]int]int{}
	for _, e := range r.edges {
		l.route(e, index[e.Source], index[e.Target], shared, known)
	}
	if len(leaves) > 0 {
		l.vertices = append(l.vertices, vertex{node: exit, layer: last + 1, w: passWidth})
		out := len(l.vertices) - 1
		for _, e := range leaves {
			l.route(e, index[e.Source], out, shared, known)
		}
	}
	for i := range l.vertices {
		v := &l.vertices[i]
		for len(l.rows) <= v.layer {
			l.rows = append(l.rows, nil)
		}
		l.rows[v.layer] = append(l.rows[v.layer], i)
	}
	for _, row := range l.rows { // where nothing crosses this order stays
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(l.rank(a), l.rank(b)) })
	}
	return l
}

// deepen gives each node its layer and returns the last one. Nodes stand in the
// order in which they were made, but an edge may have been made later between
// any two.
func (l *layers) deepen(r round, index map[trajectory.ID]int) int {
	open := make([]int, len(r.nodes))
	next := make([][]int, len(r.nodes))
	for _, e := range r.edges {
		from, to := index[e.Source], index[e.Target]
		open[to]++
		next[from] = append(next[from], to)
	}
	var free []int
	for i, n := range open {
		if n == 0 {
			free = append(free, i)
		}
	}
	last := 0
	for len(free) > 0 {
		i := free[0]
		free = free[1:]
		last = max(last, l.vertices[i].layer)
		for _, to := range next[i] {
			l.vertices[to].layer = max(l.vertices[to].layer, l.vertices[i].layer+1)
			if open[to]--; open[to] == 0 {
				free = append(free, to)
			}
		}
	}
	return last
}

// pass is a place where lines of one relation on their way to one vertex pass a
// layer.
type pass struct {
	to       int
	relation trajectory.Relation
	layer    int
}

// passWidth is the room that lines take where they pass a layer, pixels.
const passWidth = 12

func (l *layers) route(e trajectory.Edge, from, to int, shared map[pass]int, known map[[2]int]int) {
	at := from
	for layer := l.vertices[from].layer + 1; layer < l.vertices[to].layer; layer++ {
		key := pass{to, e.Relationship, layer}
		place, ok := shared[key]
		if !ok {
			place = len(l.vertices)
			l.vertices = append(l.vertices, vertex{node: -1, layer: layer, w: passWidth})
			shared[key] = place
		}
		l.join(e, at, place, false, known)
		at = place
	}
	l.join(e, at, to, true, known)
}

// join makes a strand, unless there is one.
func (l *layers) join(e trajectory.Edge, from, to int, last bool, known map[[2]int]int) {
	if i, ok := known[[2]int{from, to}]; ok {
		l.strands[i].several = true
		return
	}
	known[[2]int{from, to}] = len(l.strands)
	l.strands = append(l.strands, strand{from: from, to: to, edge: e, last: last})
	weight := pull(e.Relationship)
	if l.vertices[from].node < 0 && l.vertices[to].node < 0 {
		weight *= 10 // what passes is straight
	}
	l.vertices[from].down = append(l.vertices[from].down, link{to, weight})
	l.vertices[to].up = append(l.vertices[to].up, link{from, weight})
}

// course is the pull of the course of the work, which is drawn straight.
const course = 1000

// pull is how much an edge wants to be straight.
func pull(r trajectory.Relation) float64 {
	switch r {
	case trajectory.Triggers, trajectory.HasConclusion, trajectory.Generates:
		return course
	case trajectory.ContinuesTo:
		return 0.2
	default:
		return 1
	}
}

// sweeps is how often rows are put in order, down and up in turn.
const sweeps = 16

// order puts each row in the order of the middle of what its vertices are
// joined to, and keeps what had the fewest crossings.
func (l *layers) order() {
	best, least := clones(l.rows), l.crossings()
	for s := 0; s < sweeps && least > 0; s++ {
		at := l.places()
		for i := range l.rows {
			if s%2 == 0 {
				l.arrange(l.rows[i], at, func(v *vertex) []link { return v.up })
			} else {
				l.arrange(l.rows[len(l.rows)-1-i], at, func(v *vertex) []link { return v.down })
			}
		}
		if n := l.crossings(); n < least {
			best, least = clones(l.rows), n
		}
	}
	l.rows = best
}

func clones(rows [][]int) [][]int {
	out := make([][]int, len(rows))
	for i, r := range rows {
		out[i] = slices.Clone(r)
	}
	return out
}

// places is where each vertex stands in its row.
func (l *layers) places() []int {
	at := make([]int, len(l.vertices))
	for _, row := range l.rows {
		for i, v := range row {
			at[v] = i
		}
	}
	return at
}

// arrange puts one row in order and keeps at, where each vertex stands in its
// row, up to date.
func (l *layers) arrange(row, at []int, side func(*vertex) []link) {
	middle := make(map[int]float64, len(row))
	for i, v := range row {
		middle[v] = float64(i)
		if links := side(&l.vertices[v]); len(links) > 0 {
			sum := 0.0
			for _, k := range links {
				sum += float64(at[k.to])
			}
			middle[v] = sum / float64(len(links))
		}
	}
	slices.SortStableFunc(row, func(a, b int) int {
		return cmp.Or(cmp.Compare(middle[a], middle[b]), cmp.Compare(l.rank(a), l.rank(b)))
	})
	for i, v := range row {
		at[v] = i
	}
}

// rank puts the course of the work to the left of data, and what passes to the
// right of both.
func (l *layers) rank(v int) int {
	switch {
	case l.vertices[v].node < 0:
		return 2
	case slices.ContainsFunc(l.vertices[v].up, func(k link) bool { return k.weight >= course }):
		return 0
	}
	return 1
}

// crossings counts the strands that cross between rows.
func (l *layers) crossings() int {
	at := l.places()
	n := 0
	for _, row := range l.rows {
		var ends []int
		for _, v := range row {
			from := len(ends)
			for _, k := range l.vertices[v].down {
				ends = append(ends, at[k.to])
			}
			slices.Sort(ends[from:])
		}
		n += inversions(ends)
	}
	return n
}

// inversions counts the pairs that stand in falling order, with a Fenwick tree
// of how often each number was seen.
func inversions(list []int) int {
	if len(list) < 2 {
		return 0
	}
	seen := make([]int, slices.Max(list)+2)
	n := 0
	for i, v := range list {
		n += i // all before, less those that are not larger
		for at := v + 1; at > 0; at -= at & -at {
			n -= seen[at]
		}
		for at := v + 1; at < len(seen); at += at & -at {
			seen[at]++
		}
	}
	return n
}
