package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// header draws the title and the legend into a width and returns how high they
// are.
func (d *drawing) header(g *trajectory.Graph, wide float64) float64 {
	types, counts := present(g)
	d.printf(`<text class="title" x="0" y="16">%s</text>`+"\n", escape(shorten(heading(g), wide/19)))
	rounds, _ := split(g)
	d.printf(`<text class="subtitle" x="0" y="38">%s</text>`+"\n", escape(fmt.Sprintf("%s, %s, %s",
		many(len(rounds), "round"), many(len(g.Nodes), "node"), many(len(g.Edges), "edge"))))
	l := &legend{d: d, wide: wide, y: 66}
	for _, t := range types {
		label := fmt.Sprintf("%s %d", t, counts[t])
		l.room(label, 18)
		d.printf(`<g class="%s" transform="translate(%s %s)"><rect class="swatch" y="-10" width="12" height="12" rx="3"/>`+
			`<text class="legend" x="18">%s</text></g>`+"\n", typeClass(t), px(l.x), px(l.y), escape(label))
		l.next(label, 18)
	}
	l.x, l.y = 0, l.y+22
	for _, r := range relations(g) {
		label := string(r)
		l.room(label, 34)
		d.printf(`<g transform="translate(%s %s)"><path class="line %s" d="M0 -4H28"/><text class="legend" x="34">%s</text></g>`+"\n",
			px(l.x), px(l.y), relationClass(r), escape(label))
		l.next(label, 34)
	}
	return l.y + 22
}

// legend is where the next entry goes.
type legend struct {
	d          *drawing
	wide, x, y float64
}

const legendSize = 12

// room begins a new line where the entry does not fit.
func (l *legend) room(label string, sign float64) {
	if l.x > 0 && l.x+sign+width(label)*legendSize > l.wide {
		l.x, l.y = 0, l.y+20
	}
}

func (l *legend) next(label string, sign float64) {
	l.x += sign + width(label)*legendSize + 18
}

// relations lists those that a graph has, in order of their first edge.
func relations(g *trajectory.Graph) []trajectory.Relation {
	var out []trajectory.Relation
	for _, e := range g.Edges {
		if !slices.Contains(out, e.Relationship) {
			out = append(out, e.Relationship)
		}
	}
	return out
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// style is the sheet: neutral colours, those of the types, and both again for
// readers in the dark.
func style(g *trajectory.Graph) string {
	var light, dark strings.Builder
	types, _ := present(g)
	for _, t := range types {
		l, d := colour(t)
		rule := "  .%[1]s .bar, .%[1]s .tint, .%[1]s .swatch, .%[1]s .kind { fill: %[2]s; } .%[1]s .card { stroke: %[2]s; }\n"
		fmt.Fprintf(&light, rule, typeClass(t), l)
		fmt.Fprintf(&dark, rule, typeClass(t), d)
	}
	return "<style>\n" + sheet + light.String() + "@media (prefers-color-scheme: dark) {\n" + darkSheet + dark.String() + "}\n</style>\n" + tips()
}

const sheet = `  text { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #1f2937; }
  .page { fill: #ffffff; }
  .panel { fill: #f8fafc; stroke: #e2e8f0; }
  .title { font-size: 19px; font-weight: 650; }
  .subtitle { font-size: 13px; fill: #64748b; }
  .round { font-size: 12px; font-weight: 600; fill: #64748b; }
  .legend { font-size: 12px; fill: #334155; }
  .card { fill: #ffffff; stroke-opacity: .45; }
  .tint { fill-opacity: .07; }
  .current .card { stroke-opacity: 1; stroke-width: 2.5; }
  .kind { font-size: 10.5px; font-weight: 650; letter-spacing: .03em; }
  .number { font-size: 10.5px; fill: #94a3b8; text-anchor: end; }
  .name { font-size: 11.5px; font-weight: 600; }
  .text { font-size: 11.5px; fill: #334155; }
  .failed { font-size: 10.5px; font-weight: 650; fill: #dc2626; text-anchor: end; }
  .relation { font-size: 9.5px; fill: #64748b; paint-order: stroke; stroke: #f8fafc; stroke-width: 3px; }
  .line { fill: none; stroke: #94a3b8; stroke-width: 1.5; }
  .tip { fill: #94a3b8; }
  .has_conclusion { stroke: #10b981; } .tip-has_conclusion { fill: #10b981; }
  .generates { stroke: #d97706; } .tip-generates { fill: #d97706; }
  .refers_to { stroke-dasharray: 2 4; stroke-linecap: round; }
  .continues_to { stroke: #6366f1; stroke-dasharray: 7 4; } .tip-continues_to { fill: #6366f1; }
  .leaf { stroke-opacity: .5; stroke-width: 1.2; }
`

const darkSheet = `  text { fill: #e2e8f0; }
  .page { fill: #0b1120; }
  .panel { fill: #111a2e; stroke: #22304a; }
  .subtitle, .round, .relation { fill: #94a3b8; } .relation { stroke: #111a2e; }
  .legend, .text { fill: #cbd5e1; }
  .card { fill: #0f172a; }
  .tint { fill-opacity: .12; }
  .number { fill: #64748b; }
  .failed { fill: #f87171; }
  .line { stroke: #64748b; } .tip { fill: #64748b; }
  .has_conclusion { stroke: #34d399; } .tip-has_conclusion { fill: #34d399; }
  .generates { stroke: #f59e0b; } .tip-generates { fill: #f59e0b; }
  .continues_to { stroke: #818cf8; } .tip-continues_to { fill: #818cf8; }
`

// tips are the ends of lines, one for each style.
func tips() string {
	var b strings.Builder
	b.WriteString("<defs>\n")
	for _, class := range []string{"triggers", "has_conclusion", "generates", "refers_to", "continues_to", "other"} {
		fmt.Fprintf(&b, `  <marker id="tip-%[1]s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">`+
			`<path class="tip tip-%[1]s" d="M0 0.5 8 4 0 7.5z"/></marker>`+"\n", class)
	}
	b.WriteString("</defs>\n")
	return b.String()
}
