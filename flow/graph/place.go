package graph

import "github.com/weir-run/weir/flow"

// All lengths are pixels.
const (
	nodeHeight  = 46
	nodeMin     = 96
	letterID    = 7.8 // of a node's id
	letterType  = 6.2
	gapX        = 28
	gapY        = 46
	clusterPad  = 18
	clusterHead = 34
)

type size struct{ w, h float64 }

type point struct{ x, y float64 }

// box is a node with its position.
type box struct {
	node  *flow.Node
	x, y  float64 // upper left corner
	w, h  float64
	inner *picture // of a body; its positions are relative to the box
}

// picture is a scope with its layout; its upper left corner is 0, 0.
type picture struct {
	size
	boxes []box
	lines []routedEdge
}

// routedEdge is a line with the points that it passes.
type routedEdge struct {
	drawnEdge
	points []point
}

// allOpen is for layouts that draw every body.
func allOpen(string) bool { return true }

// layout computes the layout of a scope and of the bodies in it that are open. The names of
// its nodes follow prefix in the paths that open gets.
func layout(g *flow.Graph, prefix string, open func(path string) bool) *picture {
	inner := make([]*picture, len(g.Nodes))
	sizes := make([]size, len(g.Nodes))
	for i, n := range g.Nodes {
		sizes[i] = size{max(nodeMin, float64(len(n.ID))*letterID+28, float64(len(nodeKind(n)))*letterType+28), nodeHeight}
		if n.Body != nil && open(prefix+n.ID) {
			inner[i] = layout(drawnBody(n), prefix+n.ID+"/", open)
			sizes[i] = size{max(sizes[i].w, inner[i].w+2*clusterPad), inner[i].h + clusterPad + clusterHead}
		}
	}
	lines := edgesOf(g)
	l := newLayers(sizes, lines)
	l.order()
	l.place()
	return l.picture(g, lines, inner)
}

// place assigns every vertex its x: first side by side, then repeatedly toward the mean of
// its connected vertices, as far as its neighbours allow.
func (g *layers) place() {
	for _, row := range g.rows {
		x := 0.0
		for _, v := range row {
			g.vertices[v].x = x + g.vertices[v].w/2
			x += g.vertices[v].w + gapX
		}
	}
	const rounds = 24
	for r := range rounds {
		for i := range g.rows {
			row := g.rows[i]
			if r%2 == 1 {
				row = g.rows[len(g.rows)-1-i]
			}
			g.pull(row, r%2 == 0)
		}
	}
	least := 0.0
	for i := range g.vertices {
		if left := g.vertices[i].x - g.vertices[i].w/2; i == 0 || left < least {
			least = left
		}
	}
	for i := range g.vertices {
		g.vertices[i].x -= least
	}
}

// pull moves the vertices of a row toward their wanted positions, keeping order and gaps:
// it packs them from the left and from the right, and takes the mean.
func (g *layers) pull(row []int, down bool) {
	want := make([]float64, len(row))
	for i, v := range row {
		want[i] = g.wantedX(v, down)
	}
	left, right := make([]float64, len(row)), make([]float64, len(row))
	for i := range row {
		left[i] = want[i]
		if i > 0 {
			left[i] = max(left[i], left[i-1]+g.minDistance(row[i-1], row[i]))
		}
	}
	for i := len(row) - 1; i >= 0; i-- {
		right[i] = want[i]
		if i < len(row)-1 {
			right[i] = min(right[i], right[i+1]-g.minDistance(row[i], row[i+1]))
		}
	}
	for i, v := range row {
		g.vertices[v].x = (left[i] + right[i]) / 2
	}
}

// wantedX returns the mean position of the connected vertices above or below, or else on
// the other side, or else the present position.
func (g *layers) wantedX(v int, down bool) float64 {
	x := &g.vertices[v]
	first, second := x.up, x.down
	if !down {
		first, second = second, first
	}
	if len(first) == 0 {
		first = second
	}
	if len(first) == 0 {
		return x.x
	}
	sum := 0.0
	for _, u := range first {
		sum += g.vertices[u].x
	}
	return sum / float64(len(first))
}

// minDistance returns the minimum distance between the middles of two neighbours.
func (g *layers) minDistance(a, b int) float64 {
	return g.vertices[a].w/2 + gapX + g.vertices[b].w/2
}

// picture converts the layout to boxes and lines.
func (g *layers) picture(scope *flow.Graph, lines []drawnEdge, inner []*picture) *picture {
	p := &picture{boxes: make([]box, len(scope.Nodes))}
	middles, halves := make([]float64, len(g.rows)), make([]float64, len(g.rows))
	y := 0.0
	for i, row := range g.rows {
		tallest := 0.0
		for _, v := range row {
			tallest = max(tallest, g.vertices[v].h)
			p.w = max(p.w, g.vertices[v].x+g.vertices[v].w/2)
		}
		middles[i], halves[i] = y+tallest/2, tallest/2
		p.h = y + tallest
		y += tallest + gapY
	}
	for i := range g.vertices {
		if v := &g.vertices[i]; v.node >= 0 {
			p.boxes[v.node] = box{
				node: scope.Nodes[v.node], x: v.x - v.w/2, y: middles[v.layer] - v.h/2,
				w: v.w, h: v.h, inner: inner[v.node],
			}
		}
	}
	for i, l := range lines {
		p.lines = append(p.lines, routedEdge{l, g.points(p, g.paths[i], middles, halves)})
	}
	p.spreadEnds()
	return p
}

// points returns the ends of a line and where it crosses layers.
func (g *layers) points(p *picture, path []int, middles, halves []float64) []point {
	from, to := &p.boxes[path[0]], &p.boxes[path[len(path)-1]]
	out := []point{{from.x + from.w/2, from.y + from.h}}
	for _, v := range path[1 : len(path)-1] {
		x := &g.vertices[v]
		out = append(out, point{x.x, middles[x.layer] - halves[x.layer]}, point{x.x, middles[x.layer] + halves[x.layer]})
	}
	return append(out, point{to.x + to.w/2, to.y})
}
