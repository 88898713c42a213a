// Package graph draws flows as Mermaid, DOT and SVG. It computes the layout of the SVG
// itself, in layers from top to bottom, with the bodies of loops as boxes. Equal flows give
// equal bytes.
//
// It must not know how a flow is executed, or the state of a run.
package graph

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

// drawnEdge is one line between two nodes of a scope: all edges of one kind and one branch
// between them.
type drawnEdge struct {
	from, to int // indexes into Graph.Nodes
	kind     flow.EdgeKind
	label    string // the branch or port of origin, "" for the default one
}

// edgesOf groups the edges of a scope, in order.
func edgesOf(g *flow.Graph) []drawnEdge {
	index := make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		index[n.ID] = i
	}
	var out []drawnEdge
	for _, e := range g.Edges {
		from, ok1 := index[e.From]
		to, ok2 := index[e.To]
		if !ok1 || !ok2 {
			continue
		}
		l := drawnEdge{from: from, to: to, kind: e.Kind}
		if e.Kind == flow.EdgeControl || e.FromPort == "error" {
			l.label = e.FromPort
		}
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// nodeCategory returns the category of a node's type, "" if unknown.
func nodeCategory(c flow.Catalogue, n *flow.Node) string {
	if c == nil {
		return ""
	}
	if s := c.Lookup(n.Type); s != nil {
		return s.Category
	}
	return ""
}

// nodeKind returns the text below a node's id: its type, with the flow that it runs.
func nodeKind(n *flow.Node) string {
	if ref, _ := n.With["flow"].(string); n.Uses != nil && ref != "" {
		return n.Type + " " + ref
	}
	if from := flowChoices(n); len(from) > 0 {
		return n.Type + " " + strings.Join(from, " | ")
	}
	return n.Type
}

// flowChoices returns the flows of which the node runs one.
func flowChoices(n *flow.Node) (refs []string) {
	choice, _ := n.With["flow"].(map[string]any)
	list, _ := choice["from"].([]any)
	for _, v := range list {
		if ref, ok := v.(string); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// drawnBody returns the body of a composite as it is drawn: each branch is a box of its own.
func drawnBody(n *flow.Node) *flow.Graph {
	if n.Branches == nil {
		return n.Body
	}
	g := &flow.Graph{}
	for i := range n.Branches {
		b := &n.Branches[i]
		g.Nodes = append(g.Nodes, &flow.Node{ID: b.Name, Type: "branch", Body: &b.Graph})
	}
	return g
}

// Mermaid returns the flow as a Mermaid flowchart. Data is drawn as an arrow, control as a
// dotted one with the branch as its label, context as a thick one and tools with a circle
// at its end. A node that runs a flow is a box with double sides and the name of the flow.
func Mermaid(f *flow.Flow) []byte {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	mermaidScope(&b, &f.Graph, "n", "  ")
	return []byte(b.String())
}

func mermaidScope(b *strings.Builder, g *flow.Graph, prefix, indent string) {
	quote := strings.NewReplacer("#", "#35;", "`", "#96;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace
	for i, n := range g.Nodes {
		id := drawingName(prefix, i)
		switch {
		case n.Body != nil:
			b.WriteString(indent + "subgraph " + id + `["` + quote(n.ID) + " · " + quote(n.Type) + "\"]\n")
			mermaidScope(b, drawnBody(n), id+"_", indent+"  ")
			b.WriteString(indent + "end\n")
		case n.Uses != nil || len(flowChoices(n)) > 0:
			b.WriteString(indent + id + `[["` + quote(n.ID) + "<br/>" + quote(nodeKind(n)) + "\"]]\n")
		case hasBranches(g, n.ID):
			b.WriteString(indent + id + `{"` + quote(n.ID) + "<br/>" + quote(n.Type) + "\"}\n")
		default:
			b.WriteString(indent + id + `["` + quote(n.ID) + "<br/>" + quote(n.Type) + "\"]\n")
		}
	}
	arrows := map[flow.EdgeKind]string{flow.EdgeData: "-->", flow.EdgeControl: "-.->", flow.EdgeContext: "==>", flow.EdgeTools: "--o"}
	for _, l := range edgesOf(g) {
		b.WriteString(indent + drawingName(prefix, l.from) + " " + arrows[l.kind])
		if l.label != "" {
			b.WriteString(`|"` + quote(l.label) + `"|`)
		}
		b.WriteString(" " + drawingName(prefix, l.to) + "\n")
	}
}

// hasBranches reports whether a control edge leaves the node by a branch.
func hasBranches(g *flow.Graph, id string) bool {
	return slices.ContainsFunc(g.Edges, func(e *flow.Edge) bool {
		return e.From == id && e.Kind == flow.EdgeControl && e.FromPort != "" && e.FromPort != "error"
	})
}

// DOT returns the flow in the language of Graphviz. Bodies are clusters, each with a node
// for the loop itself, which the loop's own edges connect to.
func DOT(f *flow.Flow) []byte {
	var b strings.Builder
	b.WriteString("digraph " + quoteDOT(f.Name) + " {\n")
	b.WriteString("  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	dotScope(&b, &f.Graph, "n", "  ")
	b.WriteString("}\n")
	return []byte(b.String())
}

func dotScope(b *strings.Builder, g *flow.Graph, prefix, indent string) {
	for i, n := range g.Nodes {
		id := drawingName(prefix, i)
		label := " [label=" + quoteDOT(n.ID+"\n"+nodeKind(n))
		switch {
		case n.Uses != nil || len(flowChoices(n)) > 0:
			label += ", peripheries=2"
		case hasBranches(g, n.ID):
			label += ", shape=diamond, style=\"\""
		}
		if n.Body == nil {
			b.WriteString(indent + id + label + "];\n")
			continue
		}
		b.WriteString(indent + "subgraph cluster_" + id + " {\n")
		b.WriteString(indent + "  style=rounded;\n" + indent + "  " + id + label + ", style=dashed];\n")
		dotScope(b, drawnBody(n), id+"_", indent+"  ")
		b.WriteString(indent + "}\n")
	}
	styles := map[flow.EdgeKind]string{flow.EdgeControl: "style=dashed", flow.EdgeContext: "color=\"#2563eb\", penwidth=1.6", flow.EdgeTools: "arrowhead=odot"}
	for _, l := range edgesOf(g) {
		var attrs []string
		if s := styles[l.kind]; s != "" {
			attrs = append(attrs, s)
		}
		if l.label != "" {
			attrs = append(attrs, "label="+quoteDOT(l.label))
		}
		b.WriteString(indent + drawingName(prefix, l.from) + " -> " + drawingName(prefix, l.to))
		if len(attrs) > 0 {
			b.WriteString(" [" + strings.Join(attrs, ", ") + "]")
		}
		b.WriteString(";\n")
	}
}

// quoteDOT returns a DOT string.
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// drawingName returns the name of a node in a drawing. It is not the id, because that may
// be a keyword of the drawing language.
func drawingName(prefix string, i int) string {
	const digits = "0123456789"
	if i < 10 {
		return prefix + digits[i:i+1]
	}
	return drawingName(prefix, i/10) + digits[i%10:i%10+1]
}
