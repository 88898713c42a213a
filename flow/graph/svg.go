package graph

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/weir-run/weir/flow"
)

// margin around the drawing, pixels.
const margin = 24

// SVG returns the flow as a self-contained image: nodes in layers from top to bottom, a
// colour for each category of node type (none if c is nil), bodies as boxes. Data is a
// solid line, control a dashed one with its branch, context a blue and tools a dotted one.
func SVG(f *flow.Flow, c flow.Catalogue) []byte {
	p := layout(&f.Graph, "", allOpen)
	d := &drawing{catalogue: c}
	w, h := p.w+2*margin, p.h+2*margin
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n",
		px(w), px(h), px(w), px(h))
	d.printf("<title>%s</title>\n", escape(f.Name))
	if f.Description != "" {
		d.printf("<desc>%s</desc>\n", escape(f.Description))
	}
	d.b.WriteString(style)
	d.printf(`<rect class="page" width="%s" height="%s" rx="12"/>`+"\n", px(w), px(h))
	d.picture(p, margin, margin)
	d.b.WriteString("</svg>\n")
	return []byte(d.b.String())
}

const style = `<style>
  text { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2937; }
  .page { fill: #ffffff; }
  .node { fill: #f9fafb; stroke: #d1d5db; }
  .body { fill: #f3f4f6; fill-opacity: .6; stroke: #9ca3af; stroke-dasharray: 5 4; }
  .id { font-size: 13px; font-weight: 600; text-anchor: middle; }
  .type { font-size: 10.5px; fill: #6b7280; text-anchor: middle; }
  .label { font-size: 10.5px; fill: #92400e; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .line { fill: none; stroke: #6b7280; stroke-width: 1.4; }
  .control { stroke: #b45309; stroke-dasharray: 5 3; }
  .context { stroke: #2563eb; stroke-width: 1.8; }
  .tools { stroke: #7c3aed; stroke-dasharray: 1.5 3; stroke-linecap: round; stroke-width: 2; }
</style>
<defs>
  <marker id="data" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="#6b7280"/></marker>
  <marker id="control" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="#b45309"/></marker>
  <marker id="context" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="#2563eb"/></marker>
  <marker id="tools" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="#7c3aed"/></marker>
</defs>
`

// colours of the categories of node types.
func colour(category string) string {
	switch category {
	case "model":
		return "#7c3aed"
	case "context":
		return "#2563eb"
	case "control":
		return "#d97706"
	case "data":
		return "#059669"
	case "io":
		return "#db2777"
	case "flow":
		return "#475569"
	}
	return "#9ca3af"
}

// drawing collects the elements of an SVG.
type drawing struct {
	catalogue flow.Catalogue
	b         strings.Builder
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// picture draws a scope with its upper left corner at x, y: lines first, so that boxes
// cover them, and labels last.
func (d *drawing) picture(p *picture, x, y float64) {
	d.printf(`<g transform="translate(%s %s)">`+"\n", px(x), px(y))
	for i := range p.lines {
		d.line(&p.lines[i])
	}
	for i := range p.boxes {
		d.box(&p.boxes[i])
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.label != "" {
			at := l.points[0]
			next := l.points[1]
			d.printf(`<text class="label" x="%s" y="%s">%s</text>`+"\n",
				px(at.x+(next.x-at.x)*0.3), px(at.y+(next.y-at.y)*0.42), escape(l.label))
		}
	}
	d.b.WriteString("</g>\n")
}

func (d *drawing) line(l *routedEdge) {
	class := "line"
	if l.kind != flow.EdgeData {
		class += " " + string(l.kind)
	}
	d.printf(`<path class="%s" marker-end="url(#%s)" d="M%s %s`, class, l.kind, px(l.points[0].x), px(l.points[0].y))
	for i := 1; i < len(l.points); i++ {
		a, b := l.points[i-1], l.points[i]
		if a.x == b.x {
			d.printf(" L%s %s", px(b.x), px(b.y))
			continue
		}
		bend := (b.y - a.y) / 2
		d.printf(" C%s %s %s %s %s %s", px(a.x), px(a.y+bend), px(b.x), px(b.y-bend), px(b.x), px(b.y))
	}
	d.b.WriteString("\"/>\n")
}

func (d *drawing) box(b *box) {
	n, fill := b.node, colour(nodeCategory(d.catalogue, b.node))
	class, middle := "node", b.y+b.h/2
	if b.inner != nil {
		class, middle = "body", b.y+nodeHeight/2
	}
	d.printf(`<g><rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="8"/>`, class, px(b.x), px(b.y), px(b.w), px(b.h))
	d.printf(`<rect x="%s" y="%s" width="4" height="%s" rx="2" fill="%s"/>`, px(b.x+6), px(middle-13), px(26), fill)
	if n.Uses != nil || len(flowChoices(n)) > 0 {
		d.printf(`<rect x="%s" y="%s" width="%s" height="%s" rx="5" fill="none" stroke="#94a3b8"/>`, px(b.x+3), px(b.y+3), px(b.w-6), px(b.h-6))
	}
	if n.Description != "" {
		d.printf("<title>%s</title>", escape(n.Description))
	}
	if b.inner != nil {
		d.printf(`<text class="id" style="text-anchor:start" x="%s" y="%s">%s <tspan class="type" font-weight="400">%s</tspan></text></g>`+"\n",
			px(b.x+18), px(middle+4), escape(n.ID), escape(n.Type))
		d.picture(b.inner, b.x+(b.w-b.inner.w)/2, b.y+clusterHead)
		return
	}
	d.printf(`<text class="id" x="%s" y="%s">%s</text>`, px(b.x+b.w/2+3), px(middle-2), escape(n.ID))
	d.printf(`<text class="type" x="%s" y="%s">%s</text></g>`+"\n", px(b.x+b.w/2+3), px(middle+13), escape(nodeKind(n)))
}

// px formats a length with at most one decimal.
func px(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never fails
	return b.String()
}
