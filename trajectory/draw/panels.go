package draw

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// All lengths are pixels.
const (
	gapY      = 17 // between layers
	panelPad  = 9
	panelHead = 27  // the line with the round's number
	tallest   = 880 // a round that is higher goes on in another panel
)

// panel is a round, or a piece of one, that is laid out. Its places are
// relative to x and y.
type panel struct {
	*folded
	title  string
	blocks []*block
	shelf  []*block
	ties   []tie // indexes are into blocks
	layers *layers
	x, y   float64 // its upper left corner on the page
	w, h   float64
	band   int
	column int
	head   float64   // above the first layer
	tops   []float64 // of the layers, from the panel's
	deep   []float64 // how high the layers are
	shift  float64   // from a layer's x to the panel's
	bridge []tie     // how the panel before leads here
}

// top and bottom are where a layer begins and ends on the page.
func (p *panel) top(layer int) float64    { return p.y + p.tops[layer] }
func (p *panel) bottom(layer int) float64 { return p.top(layer) + p.deep[layer] }

// middle is the x of a vertex on the page.
func (p *panel) middle(v int) float64 { return p.x + p.shift + p.layers.vertices[v].x }

// corner is the upper left one of a block on the page.
func (p *panel) corner(b int) (x, y float64) {
	v := &p.layers.vertices[b]
	return p.middle(b) - p.blocks[v.block].w/2, p.top(v.layer)
}

// lay gives all that is in a panel its place.
func (p *panel) lay() {
	p.layers = layered(p.blocks, p.ties)
	p.layers.order()
	wide := p.layers.place()
	p.w = max(cardWidth+2*framePad, wide) + 2*panelPad
	p.shift = (p.w - wide) / 2
	p.head = panelHead + shelve(p.shelf, p.w-2*panelPad)
	p.h = p.head + panelPad/2
	y := p.head
	for layer, row := range p.layers.rows {
		high := 0.0
		for _, v := range row {
			high = max(high, p.layers.vertices[v].h)
		}
		p.tops, p.deep = append(p.tops, y), append(p.deep, high)
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

// shelve lays the blocks of a shelf out in lines of that width, and returns how
// high they are.
func shelve(shelf []*block, wide float64) float64 {
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

// newPanels lays a round out, in several panels where it is long; leaves are
// the bridges that leave it, and arrival is one that leads to it.
func newPanels(r round, m marks, leaves []trajectory.Edge, arrival trajectory.Edge) []*panel {
	f := fold(r, m)
	f.size()
	pieces := f.cut()
	of := make([]int, len(f.blocks))
	panels := make([]*panel, pieces.count)
	at := make([]int, len(f.blocks)) // indexes into the blocks of the panels
	for i := range panels {
		panels[i] = &panel{folded: f, title: fmt.Sprintf("Round %d", r.number)}
		if pieces.count > 1 {
			panels[i].title = fmt.Sprintf("Round %d \u00b7 %d of %d", r.number, i+1, pieces.count)
		}
	}
	for b := range f.blocks {
		p := panels[pieces.of[b]]
		of[b] = pieces.of[b]
		if f.shelf[b] {
			panels[0].shelf = append(panels[0].shelf, &f.blocks[b])
			continue
		}
		at[b] = len(p.blocks)
		p.blocks = append(p.blocks, &f.blocks[b])
	}
	f.spread(panels, of, at)
	f.arrive(panels, of, at, arrival)
	f.leave(panels[len(panels)-1], of, at, leaves)
	f.size()
	for _, p := range panels {
		p.lay()
	}
	return panels
}

// spread gives each tie to its panel. One that leads to the next panel ends
// below the one and begins above the other; one that leads farther becomes
// tags.
func (f *folded) spread(panels []*panel, of, at []int) {
	for _, t := range f.ties {
		from, to := of[t.from], of[t.to]
		local := t
		local.from, local.to = at[t.from], at[t.to]
		switch {
		case from == to:
			panels[from].ties = append(panels[from].ties, local)
		case from+1 == to:
			up, down := local, local
			up.to, down.from, down.card = exit, entry, -1
			panels[from].ties = append(panels[from].ties, up)
			panels[to].ties = append(panels[to].ties, down)
			panels[to].bridge = append(panels[to].bridge, t)
		default:
			for _, e := range t.edges() {
				f.tagFrom(e)
				f.tagTo(e)
			}
		}
	}
	f.clarify(of)
}

// edges are those that a tie stands for.
func (t tie) edges() []trajectory.Edge {
	var out []trajectory.Edge
	for _, s := range t.sources {
		for _, to := range t.targets {
			out = append(out, trajectory.Edge{Source: s, Target: to, Relationship: t.relation})
		}
	}
	return out
}

// clarify writes on the cards of a panel where the lines come from that lead to
// it together, where not all of them lead to the same.
func (f *folded) clarify(of []int) {
	crossing := map[int][]tie{} // by the panel that they lead to
	for _, t := range f.ties {
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

// arrive leads from above the first panel to the node that a bridge leads to, or
// no farther than to the panel.
func (f *folded) arrive(panels []*panel, of, at []int, bridge trajectory.Edge) {
	i, ok := f.index[bridge.Target]
	if !ok || f.shelf[f.at[i].block] {
		return
	}
	b := f.at[i].block
	t := bridgeTie(entry, at[b], bridge)
	p := panels[of[b]]
	p.bridge = []tie{t}
	if len(p.shelf) == 0 { // it would cross what stands there
		p.ties = append(p.ties, t)
	}
}

func bridgeTie(from, to int, e trajectory.Edge) tie {
	return tie{from: from, to: to, relation: e.Relationship, sources: []trajectory.ID{e.Source}, targets: []trajectory.ID{e.Target}, card: -1}
}

// leave leads from the steps that the next round follows from to below the last
// panel; a step of an earlier panel says so in words. Data is led from only
// where the round has no step that is a leaf.
func (f *folded) leave(p *panel, of, at []int, bridges []trajectory.Edge) {
	steps := slices.ContainsFunc(bridges, func(e trajectory.Edge) bool { return !e.Source.Type().Data() })
	last := 0
	for _, i := range of {
		last = max(last, i)
	}
	seen := map[int]bool{}
	for _, e := range bridges {
		where := f.at[f.index[e.Source]]
		switch {
		case steps && e.Source.Type().Data() || f.shelf[where.block]:
		case of[where.block] < last:
			f.tagFrom(e)
		case !seen[where.block]:
			seen[where.block] = true
			p.ties = append(p.ties, bridgeTie(at[where.block], exit, e))
		}
	}
}

// size gives all cards their sizes.
func (f *folded) size() {
	for i := range f.blocks {
		b := &f.blocks[i]
		b.arrange(f.tags)
		if c := &b.cards[0]; f.shelf[i] && len(b.cards) == 1 && f.nodes[c.node].Type == trajectory.Tool {
			c.shelve()
			b.w, b.h = c.w, c.h
		}
	}
}

// shelve makes a card of a tool that stands at the head of a round: its name
// alone.
func (c *card) shelve() {
	c.title = middle(c.name, (cardWidth-padLeft-padRight-7)/headSize/1.05-width(c.word))
	c.lines, c.h = nil, headHigh
	c.w = min(cardWidth, padLeft+padRight+7+(width(c.word)+width(c.title)*1.05)*headSize)
	if len(c.chips) > 0 {
		c.w = cardWidth
	}
}
