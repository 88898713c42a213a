package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// All lengths are pixels.
const (
	panelGap     = 30   // between panels of a column
	gutter       = 22   // between columns
	bandGap      = 44   // between bands
	maxBandWidth = 1532 // width of a band, which a window of 1600 shows
	pageAspect   = 1.5  // preferred ratio of width to height of a small page
)

// page arranges all panels in bands that a window shows completely, one below the other. The panels of a band are in
// columns, read like those of a newspaper.
type page struct {
	panels []*panel
	bands  []float64 // where each ends
	w, h   float64
}

// arrange assigns panels to bands and columns, with the upper left corner at 0, 0.
func arrange(panels []*panel) *page {
	p := &page{panels: panels}
	y := 0.0
	for len(panels) > 0 {
		n, w, h := placeBand(panels)
		for _, q := range panels[:n] {
			q.band = len(p.bands)
			q.y += y
		}
		p.w, p.h = max(p.w, w), y+h
		p.bands = append(p.bands, p.h)
		y = p.h + bandGap
		panels = panels[n:]
	}
	return p
}

// placeBand places the panels of one band, and returns their number and the size. If all remaining panels fit, the
// height of its columns is chosen for the preferred ratio.
func placeBand(panels []*panel) (n int, w, h float64) {
	highest, sum := 0.0, 0.0
	for _, p := range panels {
		highest = max(highest, p.h)
		sum += p.h + panelGap
	}
	limit := max(maxPanelHeight, panels[0].h)
	if n, w, h = placeColumns(panels, limit); n < len(panels) {
		return n, w, h
	}
	best, least := limit, max(w, pageAspect*h)
	const tries = 40
	for i := range tries {
		try := highest + (min(limit, sum)-highest)*float64(i)/tries
		if m, w, h := placeColumns(panels, try); m == n && max(w, pageAspect*h) < least {
			best, least = try, max(w, pageAspect*h)
		}
	}
	return placeColumns(panels, best)
}

// placeColumns places panels into columns of limited height until the band is full, and returns the number of panels.
func placeColumns(panels []*panel, limit float64) (n int, w, h float64) {
	x, y, wide, column := 0.0, 0.0, 0.0, 0
	for i, p := range panels {
		if y > 0 && y+p.h > limit {
			x += wide + gutter
			y, wide = 0, 0
			column++
		}
		if i > 0 && x+p.w > maxBandWidth && (y == 0 || p.w > wide) {
			return i, w, h
		}
		p.x, p.y, p.column = x, y, column
		y += p.h + panelGap
		wide = max(wide, p.w)
		w, h = max(w, x+wide), max(h, y-panelGap)
	}
	return len(panels), w, h
}

// page draws panels first, then bridges, lines and blocks above them.
func (d *drawing) page(p *page) {
	for _, panel := range p.panels {
		d.printf(`<rect class="panel" x="%s" y="%s" width="%s" height="%s" rx="10"/>`+"\n",
			px(panel.x), px(panel.y), px(panel.w), px(panel.h))
		d.printf(`<text class="round" x="%s" y="%s">%s</text>`+"\n", px(panel.x+panelPad), px(panel.y+18), escape(panel.title))
	}
	for i, panel := range p.panels {
		if i > 0 {
			d.bridge(p, p.panels[i-1], panel)
		}
	}
	for _, panel := range p.panels {
		for _, s := range panel.layers.segments {
			d.segment(panel, s)
		}
		for _, b := range panel.headers {
			d.block(b, panel.nodes, panel.x+panelPad, panel.y+panelHead)
		}
		for i, b := range panel.blocks {
			x, y := panel.corner(i)
			d.block(b, panel.nodes, x, y)
		}
	}
}

// bridge draws a line from below one panel to the next: straight down or, to another column or band, around the
// panels between.
func (d *drawing) bridge(page *page, from, to *panel) {
	if from.layers.out < 0 || len(to.bridge) == 0 {
		return
	}
	relation := to.bridge[0].relation
	x1, y1 := from.middle(from.layers.out), from.y+from.h
	x2, y2, tip := to.x+to.w/2, to.y, ` marker-end="url(#tip-`+relationClass(relation)+`)"`
	if to.layers.in >= 0 {
		x2, y2, tip = to.middle(to.layers.in), to.y+to.head, ""
	}
	line := path{}
	line.start(x1, y1)
	class := relationClass(relation)
	if slices.ContainsFunc(to.bridge, func(t connector) bool { return t.relation != relation }) {
		class = "other"
	}
	if from.band != to.band || from.column != to.column {
		class += " far"
	}
	switch below := y1 + panelGap/3; {
	case from.band != to.band:
		below = page.bands[from.band] + bandGap/2
		line.through([]point{{x1, below}, {x2, below}}, point{x2, y2})
	case from.column != to.column:
		lane, above := to.x-gutter/2, to.y-panelGap/3
		line.through([]point{{x1, below}, {lane, below}, {lane, above}, {x2, above}}, point{x2, y2})
	default:
		line.curve(x2, to.y)
		if y2 > to.y {
			line.line(x2, y2)
		}
	}
	said := connectorLabel(to.bridge)
	if relation == trajectory.ContinuesTo {
		said = fmt.Sprintf("continues_to: round %d to round %d", from.number, to.number)
	}
	d.printf(`<path class="line %s" d="%s"%s><title>%s</title></path>`+"\n", class, line.String(), tip, escape(said))
}

// segment draws a piece of a connector. Lines that join touch in the same direction.
func (d *drawing) segment(p *panel, s segment) {
	a, b := &p.layers.vertices[s.from], &p.layers.vertices[s.to]
	line := path{}
	x, begin := p.middle(s.from), p.top(a.layer)+a.h // a passing point has no height
	if s.connectors[0].card >= 0 && a.block >= 0 {
		x = d.lineBeside(p, s, &line)
	} else {
		line.start(x, begin)
		if below := p.bottom(a.layer); below > begin {
			line.line(x, below)
		}
	}
	end := p.top(b.layer)
	if b.block == exit {
		end = p.y + p.h
	}
	line.curve(p.middle(s.to), end)
	relation := s.connectors[0].relation
	class, tip := relationClass(relation), ""
	if b.block >= 0 {
		tip = ` marker-end="url(#tip-` + class + `)"`
	}
	d.printf(`<path class="line %s" d="%s"%s><title>%s</title></path>`+"\n", class, line.String(), tip, escape(connectorLabel(s.connectors)))
	if class == "other" && b.block >= 0 { // on the side that the line does not come from
		beside, anchor := p.middle(s.to)+8, "start"
		if x > p.middle(s.to)+1 {
			beside, anchor = p.middle(s.to)-8, "end"
		}
		d.printf(`<text class="relation" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n",
			px(beside), px(end-5), anchor, escape(shorten(string(relation), cardWidth/2/9.5)))
	}
}

// maxLabels is how many of the connectors that share a line its tooltip names.
const maxLabels = 50

// connectorLabel describes the connectors that share a line.
func connectorLabel(ties []connector) string {
	var out []string
	for i, t := range ties {
		if i == maxLabels && len(ties) > maxLabels+1 {
			out = append(out, fmt.Sprintf("%d more", len(ties)-maxLabels))
			break
		}
		out = append(out, t.label())
	}
	return strings.Join(out, "\n")
}

// lineBeside draws a line out of the right side of a card and down next to the block, and returns its x there.
func (d *drawing) lineBeside(p *panel, s segment, line *path) float64 {
	b := p.blocks[p.layers.vertices[s.from].block]
	c := &b.cards[s.connectors[0].card]
	left, top := p.corner(s.from)
	y := top + c.y + c.h/2
	out := left + b.w + besideWidth*2/3
	line.start(left+c.x+c.w, y)
	below := p.bottom(p.layers.vertices[s.from].layer)
	line.through([]point{{out, y}}, point{out, below})
	return out
}

// splitBridges sorts bridges by round: the first one into each, and those out of it.
func splitBridges(rounds []round, bridges []trajectory.Edge) (arrivals []trajectory.Edge, departures [][]trajectory.Edge) {
	home := map[trajectory.ID]int{}
	for i, r := range rounds {
		for _, n := range r.nodes {
			home[n.ID] = i
		}
	}
	arrivals, departures = make([]trajectory.Edge, len(rounds)), make([][]trajectory.Edge, len(rounds))
	for _, e := range bridges {
		from, to := home[e.Source], home[e.Target]
		if arrivals[to].Target == "" {
			arrivals[to] = e
		}
		departures[from] = append(departures[from], e)
	}
	return arrivals, departures
}
