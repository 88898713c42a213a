package draw

import (
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// All lengths are pixels.
const (
	nodeWidth  = 212
	lineHeight = 16
	gapY       = 24 // between layers
	panelPad   = 14
	panelHead  = 30 // the line with the round's number
	panelGap   = 34 // between panels of a column
	gutter     = 40 // between columns
	minPanel   = 240
	aspect     = 1.5 // width to height that a page wants to have
)

// panel is a round that is laid out. Its places are relative to x and y.
type panel struct {
	round
	layers *layers
	x, y   float64 // its upper left corner on the page
	w, h   float64
	column int
	tops   []float64 // of the layers, from the panel's
	deep   []float64 // how high the layers are
	shift  float64   // from a layer's x to the panel's
	exit   int       // the vertex that leads to the next round, -1 for none
	entry  int       // the node that the round before leads to, -1 for none
}

// top and bottom are where a layer begins and ends on the page.
func (p *panel) top(layer int) float64    { return p.y + p.tops[layer] }
func (p *panel) bottom(layer int) float64 { return p.top(layer) + p.deep[layer] }

// middle is the x of a vertex on the page.
func (p *panel) middle(v int) float64 { return p.x + p.shift + p.layers.vertices[v].x }

// box is the upper left corner of a node on the page, in the middle of its
// layer.
func (p *panel) box(node int) (x, y float64) {
	v := &p.layers.vertices[node]
	return p.middle(node) - nodeWidth/2, p.top(v.layer) + (p.deep[v.layer]-v.h)/2
}

// newPanel lays a round out; leaves are the bridges that leave it.
func newPanel(r round, leaves []trajectory.Edge, entry trajectory.ID) *panel {
	p := &panel{round: r, layers: layered(r, leaves), exit: -1, entry: -1}
	p.layers.order()
	wide := p.layers.place()
	p.w = max(minPanel, wide+2*panelPad)
	p.shift = (p.w - wide) / 2
	y := float64(panelHead)
	for layer, row := range p.layers.rows {
		high := 0.0
		for _, v := range row {
			high = max(high, p.layers.vertices[v].h)
		}
		p.tops, p.deep = append(p.tops, y), append(p.deep, high)
		if high > 0 { // the exit stands in a layer without height
			p.h = y + high + panelPad
		}
		y += high + p.layers.gap(layer)
	}
	for i, v := range p.layers.vertices {
		switch {
		case v.node == exit:
			p.exit = i
		case v.node >= 0 && p.nodes[v.node].ID == entry:
			p.entry = i
		}
	}
	return p
}

// page is all panels in columns, from top to bottom and left to right.
type page struct {
	panels []*panel
	w, h   float64
}

// arrange puts panels into columns so that the page has about the shape that is
// wanted, with its upper left corner at 0, 0.
func arrange(panels []*panel) *page {
	var heights []float64
	sum := 0.0
	for _, p := range panels {
		sum += p.h + panelGap
		heights = append(heights, p.h, sum)
	}
	slices.Sort(heights)
	best := &page{panels: panels}
	limit := 0.0
	tallest := 0.0
	for _, p := range panels {
		tallest = max(tallest, p.h)
	}
	// The limits worth a try are the sums of runs of panels; these are not all
	// of them, and enough.
	for i := range 24 {
		heights = append(heights, tallest+(sum-tallest)*float64(i)/24)
	}
	least := 0.0
	for _, h := range heights {
		if h < tallest {
			continue
		}
		w, used := columns(panels, h)
		if size := max(w, aspect*used); limit == 0 || size < least {
			limit, least = h, size
		}
	}
	best.w, best.h = columns(panels, limit)
	return best
}

// columns gives each panel its place, in columns that are no higher than the
// limit, and returns the size of it all.
func columns(panels []*panel, limit float64) (w, h float64) {
	x, y, wide, column := 0.0, 0.0, 0.0, 0
	for _, p := range panels {
		if y > 0 && y+p.h > limit {
			x += wide + gutter
			y, wide = 0, 0
			column++
		}
		p.x, p.y, p.column = x, y, column
		y += p.h + panelGap
		wide = max(wide, p.w)
		w, h = max(w, x+wide), max(h, y-panelGap)
	}
	return w, h
}
