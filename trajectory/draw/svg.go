package draw

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// margin around the drawing, and the least width of a page, pixels.
const (
	margin  = 28
	minPage = 560
)

// SVG returns the graph as a picture of its own: a panel for each round, its
// nodes in layers from top to bottom and coloured by type, bridges between
// panels, a legend. Boxes cut text off, tooltips have all of it. It follows the
// reader's light or dark scheme.
func SVG(g *trajectory.Graph) []byte {
	rounds, bridges := split(g)
	panels := make([]*panel, len(rounds))
	for i, r := range rounds {
		panels[i] = newPanel(r, leaving(r, bridges), entered(r, bridges))
	}
	p := arrange(panels)
	d := &drawing{current: current(g)}
	head := d.header(g, max(p.w, minPage))
	w, h := max(p.w, minPage)+2*margin, p.h+head+2*margin
	var out drawing
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n", px(w), px(h), px(w), px(h))
	out.printf("<title>%s</title>\n", escape(heading(g)))
	out.b.WriteString(style(g))
	out.printf(`<rect class="page" width="%s" height="%s"/>`+"\n", px(w), px(h))
	out.printf(`<g transform="translate(%d %d)">`+"\n", margin, margin)
	out.b.WriteString(d.b.String())
	d.b.Reset()
	out.printf(`<g transform="translate(%s %s)">`+"\n", px((w-2*margin-p.w)/2), px(head))
	d.page(p)
	out.b.WriteString(d.b.String())
	out.b.WriteString("</g>\n</g>\n</svg>\n")
	return []byte(out.b.String())
}

func leaving(r round, bridges []trajectory.Edge) []trajectory.Edge {
	return slices.DeleteFunc(slices.Clone(bridges), func(e trajectory.Edge) bool { return !r.has(e.Source) })
}

// entered is the node that bridges lead to, "" for none.
func entered(r round, bridges []trajectory.Edge) trajectory.ID {
	for _, e := range bridges {
		if r.has(e.Target) {
			return e.Target
		}
	}
	return ""
}

func (r round) has(id trajectory.ID) bool {
	return slices.ContainsFunc(r.nodes, func(n trajectory.Node) bool { return n.ID == id })
}

// drawing gathers the elements of an SVG.
type drawing struct {
	b       strings.Builder
	current []trajectory.ID
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// px is a length with a tenth of a pixel.
func px(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

// page draws panels first, then what lies over them: bridges, strands, boxes.
func (d *drawing) page(p *page) {
	for _, panel := range p.panels {
		d.printf(`<rect class="panel" x="%s" y="%s" width="%s" height="%s" rx="12"/>`+"\n",
			px(panel.x), px(panel.y), px(panel.w), px(panel.h))
		d.printf(`<text class="round" x="%s" y="%s">Round %d</text>`+"\n", px(panel.x+panelPad), px(panel.y+20), panel.number)
	}
	for i, panel := range p.panels {
		if i > 0 {
			d.bridge(p.panels[i-1], panel)
		}
	}
	for _, panel := range p.panels {
		for _, s := range panel.layers.strands {
			d.strand(panel, s)
		}
		for i := range panel.nodes {
			d.node(panel, i)
		}
	}
}

// bridge leads from the exit of one panel to the first node of the next: down,
// and where that is in another column around the panels between.
func (d *drawing) bridge(from, to *panel) {
	if from.exit < 0 || to.entry < 0 {
		return
	}
	x1, y1 := from.middle(from.exit), from.y+from.h-panelPad/2
	x2 := to.middle(to.entry)
	_, y2 := to.box(to.entry)
	line := path{}
	line.start(x1, y1)
	if from.column == to.column {
		line.curve(x2, y2)
	} else {
		lane := to.x - gutter/2
		line.through([]point{{x1, from.y + from.h + panelGap/3}, {lane, from.y + from.h + panelGap/3}, {lane, to.y - panelGap/3}, {x2, to.y - panelGap/3}}, point{x2, y2})
	}
	d.printf(`<path class="line continues_to" d="%s" marker-end="url(#tip-continues_to)"><title>continues_to: round %d to round %d</title></path>`+"\n",
		line.String(), from.number, to.number)
}

// strand draws a piece of an edge. Where lines come together they touch with
// the same direction.
func (d *drawing) strand(p *panel, s strand) {
	a, b := &p.layers.vertices[s.from], &p.layers.vertices[s.to]
	line := path{}
	x, y := p.middle(s.from), p.bottom(a.layer)
	if a.node < 0 { // it passes the layer first
		line.start(x, p.top(a.layer))
		line.line(x, y)
	} else {
		_, y = p.box(s.from)
		y += a.h
		line.start(x, y)
	}
	end := p.top(b.layer)
	switch {
	case b.node == exit:
		end = p.y + p.h - panelPad/2
	case b.node >= 0:
		_, end = p.box(s.to)
	}
	line.curve(p.middle(s.to), end)
	class, tip := relationClass(s.edge.Relationship), ""
	if b.node >= 0 {
		tip = ` marker-end="url(#tip-` + class + `)"`
	}
	said := fmt.Sprintf("%s: %s to %s", s.edge.Relationship, s.edge.Source, s.edge.Target)
	if s.several {
		said = fmt.Sprintf("%s: several to %s", s.edge.Relationship, s.edge.Target)
	}
	if s.edge.Relationship == trajectory.ContinuesTo {
		class += " leaf"
	}
	d.printf(`<path class="line %s" d="%s"%s><title>%s</title></path>`+"\n", class, line.String(), tip, escape(said))
	if class == "other" && b.node >= 0 { // on the side that the line does not come from
		beside, anchor := p.middle(s.to)+8, "start"
		if x > p.middle(s.to)+1 {
			beside, anchor = p.middle(s.to)-8, "end"
		}
		d.printf(`<text class="relation" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n",
			px(beside), px(end-5), anchor, escape(shorten(string(s.edge.Relationship), nodeWidth/2/9.5)))
	}
}

// relationClass is the style of an edge; those without one of their own have
// their relation written beside them.
func relationClass(r trajectory.Relation) string {
	switch r {
	case trajectory.Triggers, trajectory.HasConclusion, trajectory.Generates, trajectory.RefersTo, trajectory.ContinuesTo:
		return string(r)
	default:
		return "other"
	}
}

// lines is what stands in a box below its kind: the name, and as much of the
// text as fits.
func (c caption) lines() (name string, text []string) {
	const room = (nodeWidth - boxPad - 10) / 11.5
	if c.name != "" {
		name = shorten(c.name, room*0.94) // bold is wider
	}
	rest := c.text
	if name == "" && rest != "" {
		var line string
		line, rest = fit(rest, room)
		text = append(text, line)
	}
	if rest != "" {
		text = append(text, shorten(rest, room))
	}
	return name, text
}

const boxPad = 13 // from the edge of a box to its text, pixels

// boxHeight is that of a node's box.
func boxHeight(n trajectory.Node) float64 {
	name, text := captionOf(n).lines()
	lines := len(text)
	if name != "" {
		lines++
	}
	return 26 + float64(lines)*lineHeight + float64(min(lines, 1))*4
}

// node draws a box: type and number, the name, the text.
func (d *drawing) node(p *panel, i int) {
	n := p.nodes[i]
	x, y := p.box(i)
	c := captionOf(n)
	class := "node " + typeClass(n.Type)
	if slices.Contains(d.current, n.ID) {
		class += " current"
	}
	h := p.layers.vertices[i].h
	d.printf(`<g class="%s" transform="translate(%s %s)"><title>%s</title>`+"\n", class, px(x), px(y), escape(xmlText(tooltip(n))))
	d.printf(`<rect class="card" width="%d" height="%s" rx="8"/><rect class="tint" width="%d" height="%s" rx="8"/>`, nodeWidth, px(h), nodeWidth, px(h))
	d.printf(`<path class="bar" d="M5 0H8A8 8 0 0 0 0 8V%sA8 8 0 0 0 8 %sH5z"/>`+"\n", px(h-8), px(h))
	d.printf(`<text class="kind" x="%d" y="17">%s</text>`, boxPad, escape(c.kind))
	d.printf(`<text class="number" x="%d" y="17">%s</text>`+"\n", nodeWidth-10, escape(c.number))
	if c.failed {
		d.printf(`<text class="failed" x="%d" y="17">failed</text>`, nodeWidth-34)
	}
	name, text := c.lines()
	below := 34
	if name != "" {
		d.printf(`<text class="name" x="%d" y="%d">%s</text>`, boxPad, below, escape(name))
		below += lineHeight
	}
	for j, line := range text {
		d.printf(`<text class="text" x="%d" y="%d">%s</text>`, boxPad, below+j*lineHeight, escape(line))
	}
	d.b.WriteString("</g>\n")
}

// xmlText is text without characters that XML cannot hold.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, s)
}

func typeClass(t trajectory.Type) string { return "t-" + strings.ToLower(string(t)) }
