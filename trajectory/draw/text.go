package draw

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// labelLength is how many letters of a name or text stand in a node that
// somebody else lays out.
const labelLength = 28

// DOT returns the graph for Graphviz: a cluster for each round, tooltips with
// the full text.
func DOT(g *trajectory.Graph) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph trajectory {\n  label=%s;\n  tooltip=\" \";\n", dotText(heading(g)))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\", fontsize=10];\n" +
		"  edge [fontname=\"Helvetica\", fontsize=8, color=\"#6b7280\"];\n")
	rounds, bridges := split(g)
	for _, r := range rounds {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=\"Round %d\"; color=\"#d1d5db\";\n", r.number, r.number)
		for _, n := range r.nodes {
			light, _ := colour(n.Type)
			fmt.Fprintf(&b, "    %s [label=%s, tooltip=%s, color=\"%s\"];\n",
				dotText(string(n.ID)), dotText(strings.Join(label(n), "\n")), dotText(tooltip(n)), light)
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

// dotText quotes text: in DOT a backslash begins an escape.
func dotText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == 0 {
			return -1
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", `\n`).Replace(s) + `"`
}

// Mermaid returns the graph as a Mermaid flowchart: a subgraph for each round.
func Mermaid(g *trajectory.Graph) []byte {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	names := make(map[trajectory.ID]string, len(g.Nodes))
	rounds, bridges := split(g)
	for _, r := range rounds {
		fmt.Fprintf(&b, "  subgraph round%d[\"Round %d\"]\n", r.number, r.number)
		for _, n := range r.nodes {
			name := fmt.Sprintf("n%d", len(names))
			names[n.ID] = name
			var lines []string
			for _, l := range label(n) {
				lines = append(lines, mermaidText(l))
			}
			fmt.Fprintf(&b, "    %s[\"%s\"]:::%s\n", name, strings.Join(lines, "<br/>"), n.Type)
		}
		b.WriteString("  end\n")
		for _, e := range r.edges {
			fmt.Fprintf(&b, "  %s -->|%s| %s\n", names[e.Source], e.Relationship, names[e.Target])
		}
	}
	for _, e := range bridges {
		fmt.Fprintf(&b, "  %s -.->|%s| %s\n", names[e.Source], e.Relationship, names[e.Target])
	}
	types, _ := present(g)
	for _, t := range types {
		light, _ := colour(t)
		fmt.Fprintf(&b, "  classDef %s stroke:%s,stroke-width:2px\n", t, light)
	}
	return []byte(b.String())
}

// mermaidText writes what Mermaid or HTML would read as theirs as entities.
func mermaidText(s string) string {
	return strings.NewReplacer(
		"#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;", "\\", "#92;").Replace(s)
}

// label is a node in two or three lines.
func label(n trajectory.Node) []string {
	c := captionOf(n)
	out := []string{strings.TrimSpace(c.kind + " " + c.number)}
	for _, s := range []string{c.name, c.text} {
		if r := []rune(s); len(r) > labelLength {
			s = strings.TrimSpace(string(r[:labelLength])) + "\u2026"
		}
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// heading says whose graph it is.
func heading(g *trajectory.Graph) string {
	h := "Trajectory of session " + plain(g.Session)
	if g.Sub > 0 {
		h += fmt.Sprintf(", sub-agent %d", g.Sub)
	}
	return h
}
