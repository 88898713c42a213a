package draw

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// All lengths are pixels.
const (
	gapY           = 17 // between layers
	panelPad       = 9
	panelHead      = 27  // the line with the round's number
	maxPanelHeight = 880 // a round that is higher is divided
)

// panel is a round, or a part of one, with its layout. Positions are relative to x and y.
type panel struct {
	*blockRound
	title        string
	blocks       []*block
	headers      []*block
	connectors   []connector // indexes are into blocks
	layers       *layers
	x, y         float64 // its upper left corner on the page
	w, h         float64
	band         int
	column       int
	head         float64     // above the first layer
	layerTops    []float64   // offset of the layers in the panel
	layerHeights []float64   // height of the layers
	shift        float64     // from a layer's x to the panel's
	bridge       []connector // style of the line from the previous panel
}

// top and bottom are the upper and lower edge of a layer on the page.
func (p *panel) top(layer int) float64    { return p.y + p.layerTops[layer] }
func (p *panel) bottom(layer int) float64 { return p.top(layer) + p.layerHeights[layer] }

// middle returns the x of a vertex on the page.
func (p *panel) middle(v int) float64 { return p.x + p.shift + p.layers.vertices[v].x }

// corner returns the upper left corner of a block on the page.
func (p *panel) corner(b int) (x, y float64) {
	v := &p.layers.vertices[b]
	return p.middle(b) - p.blocks[v.block].w/2, p.top(v.layer)
}

// layOut sets all positions in a panel.
func (p *panel) layOut() {
	p.layers = newLayers(p.blocks, p.connectors)
	p.layers.order()
	wide := p.layers.place()
	p.w = max(cardWidth+2*framePad, wide) + 2*panelPad
	p.shift = (p.w - wide) / 2
	p.head = panelHead + layOutHeaders(p.headers, p.w-2*panelPad)
	p.h = p.head + panelPad/2
	y := p.head
	for layer, row := range p.layers.rows {
		high := 0.0
		for _, v := range row {
			high = max(high, p.layers.vertices[v].h)
		}
		p.layerTops, p.layerHeights = append(p.layerTops, y), append(p.layerHeights, high)
		switch {
		case high > 0:
			p.h = y + high + panelPad
			y += high + p.layers.gap(layer)
		case layer == 0 && p.layers.in >= 0:
			y += gapY / 2 // below the entry
			if len(p.layers.vertices[p.layers.in].down) > 1 {
				y += gapY
			}
		}
	}
}

// layOutHeaders arranges header blocks in lines of that width, and returns their height.
func layOutHeaders(shelf []*block, wide float64) float64 {
	x, y, line := 0.0, 0.0, 0.0
	for _, b := range shelf {
		if x > 0 && x+b.w > wide {
			x, y = 0, y+line+cardGap
			line = 0
		}
		for i := range b.cards {
			b.cards[i].x += x
			b.cards[i].y += y
		}
		x += b.w + cardGap
		line = max(line, b.h)
	}
	if len(shelf) == 0 {
		return 0
	}
	return y + line + gapY
}

// newPanels lays out a round, in several panels if it is long; leaves are the bridges out of it, and arrival is one
// into it.
func newPanels(r round, m activity, departures []trajectory.Edge, arrival trajectory.Edge) []*panel {
	f := toBlocks(r, m)
	f.sizeCards()
	pieces := f.splitPanels()
	of := make([]int, len(f.blocks))
	panels := make([]*panel, pieces.count)
	at := make([]int, len(f.blocks)) // indexes into the blocks of the panels
	for i := range panels {
		panels[i] = &panel{blockRound: f, title: fmt.Sprintf("Round %d", r.number)}
		if pieces.count > 1 {
			panels[i].title = fmt.Sprintf("Round %d \u00b7 %d of %d", r.number, i+1, pieces.count)
		}
	}
	for b := range f.blocks {
		p := panels[pieces.panelOf[b]]
		of[b] = pieces.panelOf[b]
		if f.isHeader[b] {
			panels[0].headers = append(panels[0].headers, &f.blocks[b])
			continue
		}
		at[b] = len(p.blocks)
		p.blocks = append(p.blocks, &f.blocks[b])
	}
	f.assignConnectors(panels, of, at)
	f.connectArrival(panels, of, at, arrival)
	f.connectLeaves(panels[len(panels)-1], of, at, departures)
	f.sizeCards()
	for _, p := range panels {
		p.layOut()
	}
	return panels
}

// assignConnectors assigns each connector to a panel. A connector to the next panel ends below the one and begins
// above the other; a longer one becomes tags.
func (f *blockRound) assignConnectors(panels []*panel, of, at []int) {
	for _, t := range f.connectors {
		from, to := of[t.from], of[t.to]
		local := t
		local.from, local.to = at[t.from], at[t.to]
		switch {
		case from == to:
			panels[from].connectors = append(panels[from].connectors, local)
		case from+1 == to:
			up, down := local, local
			up.to, down.from, down.card = exit, entry, -1
			panels[from].connectors = append(panels[from].connectors, up)
			panels[to].connectors = append(panels[to].connectors, down)
			panels[to].bridge = append(panels[to].bridge, t)
		default:
			for _, e := range t.edges() {
				f.tagFrom(e)
				f.tagTo(e)
			}
		}
	}
	f.labelEntries(of)
}

// edges returns the edges of a connector.
func (t connector) edges() []trajectory.Edge {
	var out []trajectory.Edge
	for _, s := range t.sources {
		for _, to := range t.targets {
			out = append(out, trajectory.Edge{Source: s, Target: to, Relationship: t.relation})
		}
	}
	return out
}

// labelEntries writes the sources of lines from the previous panel on the target cards, unless all lines lead to the
// same card.
func (f *blockRound) labelEntries(of []int) {
	crossing := map[int][]connector{} // by the panel that they lead to
	for _, t := range f.connectors {
		if of[t.from]+1 == of[t.to] {
			crossing[of[t.to]] = append(crossing[of[t.to]], t)
		}
	}
	for _, ties := range crossing { // each has cards of its own
		from, to := map[trajectory.ID]bool{}, map[int]bool{}
		pairs := 0
		for _, t := range ties {
			for _, s := range t.sources {
				from[s] = true
			}
			to[t.to] = true
			pairs += len(t.sources)
		}
		if pairs == len(from)*len(to) {
			continue
		}
		for _, t := range ties {
			for _, e := range t.edges() {
				f.tagTo(e)
			}
		}
	}
}

// connectArrival draws the line from above the first panel to the target node of a bridge, or only to the panel.
func (f *blockRound) connectArrival(panels []*panel, of, at []int, bridge trajectory.Edge) {
	i, ok := f.index[bridge.Target]
	if !ok || f.isHeader[f.places[i].block] {
		return
	}
	b := f.places[i].block
	t := bridgeConnector(entry, at[b], bridge)
	p := panels[of[b]]
	p.bridge = []connector{t}
	if len(p.headers) == 0 { // it would cross other elements
		p.connectors = append(p.connectors, t)
	}
}

func bridgeConnector(from, to int, e trajectory.Edge) connector {
	return connector{from: from, to: to, relation: e.Relationship, sources: []trajectory.ID{e.Source}, targets: []trajectory.ID{e.Target}, card: -1}
}

// connectLeaves draws lines from the leaves of the round to below the last panel; a step of an earlier panel gets a
// tag. Data is connected only if the round has no step as a leaf.
func (f *blockRound) connectLeaves(p *panel, of, at []int, bridges []trajectory.Edge) {
	steps := slices.ContainsFunc(bridges, func(e trajectory.Edge) bool { return !e.Source.Type().IsData() })
	last := 0
	for _, i := range of {
		last = max(last, i)
	}
	seen := map[int]bool{}
	for _, e := range bridges {
		where := f.places[f.index[e.Source]]
		switch {
		case steps && e.Source.Type().IsData() || f.isHeader[where.block]:
		case of[where.block] < last:
			f.tagFrom(e)
		case !seen[where.block]:
			seen[where.block] = true
			p.connectors = append(p.connectors, bridgeConnector(at[where.block], exit, e))
		}
	}
}

// sizeCards sets the sizes of all cards.
func (f *blockRound) sizeCards() {
	for i := range f.blocks {
		b := &f.blocks[i]
		b.arrange(f.tags)
		if c := &b.cards[0]; f.isHeader[i] && len(b.cards) == 1 && f.nodes[c.node].Type == trajectory.Tool {
			c.makeHeader()
			b.w, b.h = c.w, c.h
		}
	}
}

// makeHeader creates the card of a tool in the header of a round, with only its name.
func (c *card) makeHeader() {
	c.title = shortenMiddle(c.name, (cardWidth-padLeft-padRight-7)/headSize/1.05-width(c.word))
	c.lines, c.h = nil, headHeight
	c.w = min(cardWidth, padLeft+padRight+7+(width(c.word)+width(c.title)*1.05)*headSize)
	if len(c.chips) > 0 {
		c.w = cardWidth
	}
}
