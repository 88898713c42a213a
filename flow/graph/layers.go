package graph

import "github.com/weir-run/weir/internal/layered"

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

// newLayers assigns nodes to layers.
func newLayers(sizes []size, lines []drawnEdge) *layers {
	next := make([][]int, len(sizes))
	for _, l := range lines {
		next[l.from] = append(next[l.from], l.to)
	}
	depth := layered.Depths(next)
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

// order orders each row so that few lines cross.
func (g *layers) order() {
	d := layered.Drawing{Rows: g.rows, Up: make([][]int, len(g.vertices)), Down: make([][]int, len(g.vertices))}
	for i := range g.vertices {
		d.Up[i], d.Down[i] = g.vertices[i].up, g.vertices[i].down
	}
	d.Order()
	g.rows = d.Rows
}
