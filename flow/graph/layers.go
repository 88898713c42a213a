package graph

import (
	"cmp"
	"slices"
)

// vertex is a node of the layout, or a point where a long line crosses a layer.
type vertex struct {
	node  int // index into Graph.Nodes, -1 for a crossing line
	layer int
	w, h  float64
	x     float64 // x of the middle
	up    []int   // vertices of the layer above that it is connected to
	down  []int
}

// layers is a scope divided into layers so that every line leads one layer down.
type layers struct {
	vertices []vertex
	rows     [][]int // vertices by layer, from left to right
	paths    [][]int // for each line the vertices it passes, including its ends
}

// layered assigns nodes to layers. Nodes are in flow order, so every line leads from a
// lower to a higher index.
func layered(sizes []size, lines []drawnEdge) *layers {
	depth := make([]int, len(sizes))
	for _, l := range sortLines(lines) {
		depth[l.to] = max(depth[l.to], depth[l.from]+1)
	}
	lowerSources(depth, lines)
	g := &layers{vertices: make([]vertex, len(sizes))}
	for i, s := range sizes {
		g.vertices[i] = vertex{node: i, layer: depth[i], w: s.w, h: s.h}
	}
	for _, l := range lines {
		g.paths = append(g.paths, g.route(l))
	}
	last := 0
	for i := range g.vertices {
		last = max(last, g.vertices[i].layer)
	}
	g.rows = make([][]int, last+1)
	for i := range g.vertices {
		v := &g.vertices[i]
		g.rows[v.layer] = append(g.rows[v.layer], i)
	}
	return g
}

func sortLines(lines []drawnEdge) []drawnEdge {
	out := slices.Clone(lines)
	slices.SortStableFunc(out, func(a, b drawnEdge) int { return cmp.Compare(a.from, b.from) })
	return out
}

// lowerSources moves nodes without incoming lines next to their targets.
func lowerSources(depth []int, lines []drawnEdge) {
	first := make(map[int]int)
	entered := make(map[int]bool)
	for _, l := range lines {
		entered[l.to] = true
		if d, ok := first[l.from]; !ok || depth[l.to] < d {
			first[l.from] = depth[l.to]
		}
	}
	for i := range depth {
		if d, ok := first[i]; ok && !entered[i] {
			depth[i] = d - 1
		}
	}
}

// passWidth is the width of a line that crosses a layer.
const passWidth = 14

// route creates the vertices where lines cross layers, and connects them.
func (g *layers) route(l drawnEdge) []int {
	path := []int{l.from}
	for layer := g.vertices[l.from].layer + 1; layer < g.vertices[l.to].layer; layer++ {
		g.vertices = append(g.vertices, vertex{node: -1, layer: layer, w: passWidth})
		path = append(path, len(g.vertices)-1)
	}
	path = append(path, l.to)
	for i := 1; i < len(path); i++ {
		a, b := path[i-1], path[i]
		g.vertices[a].down = append(g.vertices[a].down, b)
		g.vertices[b].up = append(g.vertices[b].up, a)
	}
	return path
}

// orderSweeps is the number of times that the rows are ordered, down and up alternately.
// More sweeps rarely make a difference.
const orderSweeps = 12

// order orders each row by the mean position of connected vertices, and keeps the order
// with the fewest crossings.
func (g *layers) order() {
	best, least := g.cloneRows(), g.crossings()
	for s := range orderSweeps {
		if least == 0 {
			break
		}
		if s%2 == 0 {
			for _, row := range g.rows[min(1, len(g.rows)):] {
				g.arrange(row, func(v *vertex) []int { return v.up })
			}
		} else {
			for i := len(g.rows) - 2; i >= 0; i-- {
				g.arrange(g.rows[i], func(v *vertex) []int { return v.down })
			}
		}
		if n := g.crossings(); n < least {
			best, least = g.cloneRows(), n
		}
	}
	g.rows = best
}

func (g *layers) cloneRows() [][]int {
	out := make([][]int, len(g.rows))
	for i, r := range g.rows {
		out[i] = slices.Clone(r)
	}
	return out
}

// positions returns each vertex's position in its row.
func (g *layers) positions() []int {
	pos := make([]int, len(g.vertices))
	for _, row := range g.rows {
		for i, v := range row {
			pos[v] = i
		}
	}
	return pos
}

func (g *layers) arrange(row []int, joined func(*vertex) []int) {
	pos := g.positions()
	middle := make(map[int]float64, len(row))
	for i, v := range row {
		list := joined(&g.vertices[v])
		if len(list) == 0 {
			middle[v] = float64(i)
			continue
		}
		sum := 0
		for _, u := range list {
			sum += pos[u]
		}
		middle[v] = float64(sum) / float64(len(list))
	}
	slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
}

// crossings counts the crossing lines between neighbouring rows.
func (g *layers) crossings() int {
	pos := g.positions()
	n := 0
	for _, row := range g.rows {
		var ends []int // lower ends, in the order of the upper ones
		for _, v := range row {
			down := make([]int, 0, len(g.vertices[v].down))
			for _, u := range g.vertices[v].down {
				down = append(down, pos[u])
			}
			slices.Sort(down)
			ends = append(ends, down...)
		}
		n += inversions(ends)
	}
	return n
}

// inversions counts the pairs in the wrong order, by merge sort.
func inversions(list []int) int {
	if len(list) < 2 {
		return 0
	}
	a, b := slices.Clone(list[:len(list)/2]), slices.Clone(list[len(list)/2:])
	n := inversions(a) + inversions(b)
	slices.Sort(a)
	slices.Sort(b)
	i := 0
	for _, y := range b {
		for i < len(a) && a[i] <= y {
			i++
		}
		n += len(a) - i
	}
	return n
}
