package draw

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// Mermaid returns the graph as a Mermaid flowchart: a subgraph for each round.
func Mermaid(g *trajectory.Graph) []byte {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	names := make(map[trajectory.ID]string, len(g.Nodes))
	rounds, bridges := split(g)
	m := findActivity(g)
	for _, r := range rounds {
		fmt.Fprintf(&b, "  subgraph round%d[\"Round %d\"]\n", r.number, r.number)
		for _, n := range r.nodes {
			name := fmt.Sprintf("n%d", len(names))
			names[n.ID] = name
			var lines []string
			for _, l := range nodeLabel(n, m) {
				lines = append(lines, mermaidText(l))
			}
			fmt.Fprintf(&b, "    %s[\"%s\"]:::%s\n", name, strings.Join(lines, "<br/>"), mermaidClass(n, m))
		}
		b.WriteString("  end\n")
		for _, e := range r.edges {
			fmt.Fprintf(&b, "  %s -->|%s| %s\n", names[e.Source], e.Relationship, names[e.Target])
		}
	}
	for _, e := range bridges {
		fmt.Fprintf(&b, "  %s -.->|%s| %s\n", names[e.Source], e.Relationship, names[e.Target])
	}
	types, _ := typesIn(g)
	for _, t := range types {
		light, _ := typeColours(t)
		fmt.Fprintf(&b, "  classDef %s stroke:%s,stroke-width:2px\n", t, light)
	}
	b.WriteString("  classDef Failed stroke:#dc2626,stroke-width:3px,color:#b91c1c\n")
	for _, n := range g.Nodes {
		if m.current[n.ID] {
			fmt.Fprintf(&b, "  style %s stroke-width:5px\n", names[n.ID])
		}
	}
	return []byte(b.String())
}

// mermaidText escapes characters with a meaning in Mermaid or HTML.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '#', '`', '\\':
			fmt.Fprintf(&b, "#%d;", r)
		case '"':
			b.WriteString("#quot;")
		case '<':
			b.WriteString("#lt;")
		case '>':
			b.WriteString("#gt;")
		case '&':
			b.WriteString("#amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mermaidClass returns a node's type, or that it failed.
func mermaidClass(n trajectory.Node, m activity) string {
	if captionOf(n, m, "").failed {
		return "Failed"
	}
	return string(n.Type)
}
