package draw

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// header draws the title and the legend, and returns their height.
func (d *drawing) header(g *trajectory.Graph, m activity, wide float64) float64 {
	types, counts := typesIn(g)
	d.printf(`<text class="heading" x="0" y="16">%s</text>`+"\n", escape(shorten(graphTitle(g), wide/19)))
	rounds, _ := split(g)
	d.printf(`<text class="subtitle" x="0" y="38">%s</text>`+"\n", escape(fmt.Sprintf("%s, %s, %s",
		countOf(len(rounds), "round"), countOf(len(g.Nodes), "node"), countOf(len(g.Edges), "edge"))))
	l := &legend{d: d, wide: wide, y: 64}
	for _, t := range types {
		l.entry(fmt.Sprintf("%s %d", t, counts[t]), 18, `<g class="%s"><rect class="swatch" y="-10" width="12" height="12" rx="3"/></g>`, typeClass(t))
	}
	l.marks(g, m)
	l.x, l.y = 0, l.y+21
	for _, r := range relations(g) {
		l.entry(string(r), 34, `<path class="line %s" d="M0 -4H28"/>`, relationClass(r))
	}
	return l.y + 22
}

// marks explains the marks of cards that occur.
func (l *legend) marks(g *trajectory.Graph, m activity) {
	if len(m.current) > 0 {
		l.entry("an active branch ends here", 52, `<rect class="flag" y="-11" width="46" height="14" rx="4"/><text class="flagged" x="23" y="-0.7">active</text>`)
	}
	if slices.ContainsFunc(g.Nodes, func(n trajectory.Node) bool { return captionOf(n, m, "").failed }) {
		l.entry("failed", 24, `<g class="failed"><rect class="mark" y="-10.5" width="18" height="13" rx="3"/></g>`)
	}
	if len(m.inactive) > 0 {
		l.entry("not on an active branch", 24, `<g class="off"><rect class="mark" y="-10.5" width="18" height="13" rx="3"/></g>`)
	}
}

// legend is the position of the next entry.
type legend struct {
	d          *drawing
	wide, x, y float64
}

const legendSize = 12

// entry draws a sign of that width and its label, on a new line if they do not fit.
func (l *legend) entry(label string, wide float64, sign string, args ...any) {
	used := wide + width(label)*legendSize
	if l.x > 0 && l.x+used > l.wide {
		l.x, l.y = 0, l.y+20
	}
	l.d.printf(`<g transform="translate(%s %s)">`+sign+`<text class="legend" x="%s">%s</text></g>`+"\n",
		slices.Concat([]any{px(l.x), px(l.y)}, args, []any{px(wide), escape(label)})...)
	l.x += used + 14
}

// relations lists the relations in a graph, in order of their first edge.
func relations(g *trajectory.Graph) []trajectory.Relation {
	var out []trajectory.Relation
	for _, e := range g.Edges {
		if !slices.Contains(out, e.Relationship) {
			out = append(out, e.Relationship)
		}
	}
	return out
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
