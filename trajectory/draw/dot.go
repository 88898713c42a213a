package draw

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// labelWidth is the maximum width of a text in a node of another layout program, in font sizes.
const labelWidth = 20

// DOT returns the graph for Graphviz: a cluster for each round, tooltips with
// the full text.
func DOT(g *trajectory.Graph) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph trajectory {\n  label=%s;\n  tooltip=\" \";\n", dotText(graphTitle(g)))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\", fontsize=10];\n" +
		"  edge [fontname=\"Helvetica\", fontsize=8, color=\"#6b7280\"];\n")
	rounds, bridges := split(g)
	m := findActivity(g)
	for _, r := range rounds {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=\"Round %d\"; color=\"#d1d5db\";\n", r.number, r.number)
		for _, n := range r.nodes {
			fmt.Fprintf(&b, "    %s [label=%s, tooltip=%s, %s];\n",
				dotText(string(n.ID)), dotText(strings.Join(nodeLabel(n, m), "\n")), dotText(tooltip(n)), dotStyle(n, m))
		}
		b.WriteString("  }\n")
		for _, e := range r.edges {
			fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", dotText(string(e.Source)), dotText(string(e.Target)), dotText(string(e.Relationship)))
		}
	}
	for _, e := range bridges {
		fmt.Fprintf(&b, "  %s -> %s [label=%s, style=dashed];\n", dotText(string(e.Source)), dotText(string(e.Target)), dotText(string(e.Relationship)))
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// dotText quotes text; in DOT a backslash starts an escape sequence.
func dotText(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case 0, '\r':
		case '\\', '"':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// dotStyle returns the style of a node: the colour of its type, red for a failure, a thick border for the end of an
// active branch and a dashed one for a node not on an active branch.
func dotStyle(n trajectory.Node, m activity) string {
	c := captionOf(n, m, "")
	light, _ := typeColours(n.Type)
	look := fmt.Sprintf("color=%q, fillcolor=%q", light, light+"14")
	switch {
	case c.failed:
		look = `color="#dc2626", fillcolor="#fef2f2", fontcolor="#b91c1c"`
	case c.inactive:
		look = fmt.Sprintf("color=%q, style=\"rounded,dashed\", fontcolor=\"#6b7280\"", light)
	}
	if c.active {
		look += ", penwidth=3"
	}
	return look
}

// nodeLabel describes a node in a few lines.
func nodeLabel(n trajectory.Node, m activity) []string {
	c := captionOf(n, m, "")
	out := []string{c.head()}
	if c.active {
		out[0] += " (active)"
	}
	parts := []string{c.name}
	for _, p := range c.parts {
		parts = append(parts, p.sign+p.text)
	}
	for _, s := range parts {
		if s != "" && len(out) < 4 {
			out = append(out, shorten(s, labelWidth))
		}
	}
	return out
}

// graphTitle names the user, session and agent of the graph.
func graphTitle(g *trajectory.Graph) string {
	h := "Trajectory of session " + plain(g.Session)
	if g.Sub > 0 {
		h += fmt.Sprintf(", sub-agent %d", g.Sub)
	}
	return h
}
