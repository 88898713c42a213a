package graph

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// Layout is a drawn flow, or the body of a composite, as numbers: the layout that SVG
// draws, for programs that draw themselves. Lengths are pixels.
type Layout struct {
	Width  float64      `json:"width"`
	Height float64      `json:"height"`
	Nodes  []LayoutNode `json:"nodes"`
	Edges  []LayoutEdge `json:"edges"`
}

// LayoutNode is a box. X and Y are its upper left corner, relative to that of the layout
// that it is in.
type LayoutNode struct {
	ID          string  `json:"id"`
	Type        string  `json:"type" doc:"The node type; branch for a branch of a race"`
	Label       string  `json:"label" doc:"The type, with the flow that the node runs"`
	Category    string  `json:"category" doc:"That of the type: model, context, control, data, io, flow"`
	Description string  `json:"description,omitempty"`
	X           float64 `json:"x"`
	Y           float64 `json:"y"`
	Width       float64 `json:"width"`
	Height      float64 `json:"height"`
	// Body is the layout of a composite's body, nil for other nodes. Its upper left corner
	// is BodyX, BodyY in the box.
	Body  *Layout `json:"body,omitempty"`
	BodyX float64 `json:"bodyX,omitempty"`
	BodyY float64 `json:"bodyY,omitempty"`
	// Folded is the number of nodes, at every depth, of a body that is not drawn.
	Folded int `json:"folded,omitempty" doc:"How many nodes the body has that is not drawn"`
}

// LayoutEdge is a line. Points begin at the node From and end at the node To.
type LayoutEdge struct {
	From   int          `json:"from" doc:"Index of a node"`
	To     int          `json:"to" doc:"Index of a node"`
	Kind   string       `json:"kind" enum:"data,control,context,tools"`
	Label  string       `json:"label,omitempty" doc:"The branch or port of origin, if it is not the default one"`
	Points [][2]float64 `json:"points"`
}

// LayoutOf computes the layout of a flow. Equal flows give equal layouts. Categories are
// empty if c is nil.
func LayoutOf(f *flow.Flow, c flow.Catalogue) *Layout {
	return layoutOf(layout(&f.Graph, "", allOpen), c)
}

// FoldedLayoutOf is LayoutOf with the bodies of composites drawn only where their paths, such as
// refine or refine/draft, are among open. The others are nodes without a body.
func FoldedLayoutOf(f *flow.Flow, c flow.Catalogue, open []string) *Layout {
	return layoutOf(layout(&f.Graph, "", func(path string) bool { return slices.Contains(open, path) }), c)
}

// countNodes is the number of nodes that a drawing of a scope has, at every depth.
func countNodes(g *flow.Graph) int {
	n := len(g.Nodes)
	for _, x := range g.Nodes {
		if x.Body != nil {
			n += countNodes(drawnBody(x))
		}
	}
	return n
}

func layoutOf(p *picture, c flow.Catalogue) *Layout {
	out := &Layout{Width: p.w, Height: p.h, Nodes: make([]LayoutNode, 0, len(p.boxes)), Edges: make([]LayoutEdge, 0, len(p.lines))}
	for i := range p.boxes {
		b := &p.boxes[i]
		n := LayoutNode{
			ID: b.node.ID, Type: b.node.Type, Label: nodeKind(b.node), Category: nodeCategory(c, b.node), Description: b.node.Description,
			X: b.x, Y: b.y, Width: b.w, Height: b.h,
		}
		if b.inner != nil {
			n.Body, n.BodyX, n.BodyY = layoutOf(b.inner, c), (b.w-b.inner.w)/2, clusterHead
		} else if b.node.Body != nil {
			n.Folded = countNodes(drawnBody(b.node))
		}
		out.Nodes = append(out.Nodes, n)
	}
	for i := range p.lines {
		l := &p.lines[i]
		e := LayoutEdge{From: l.from, To: l.to, Kind: string(l.kind), Label: l.label}
		for _, at := range l.points {
			e.Points = append(e.Points, [2]float64{at.x, at.y})
		}
		out.Edges = append(out.Edges, e)
	}
	return out
}
