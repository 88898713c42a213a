package draw

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// margin around the drawing, and the least width of a page, pixels.
const (
	margin  = 20
	minPage = 560
)

// SVG returns the graph as a picture that fits the width of a 1600-pixel window at readable size. Each round is a
// panel, read from top to bottom and then in the next column; a long round is divided into several panels. The steps
// follow each other in it, and the calls and data of a step are drawn as a tree. Tools are in the header of a round,
// and cards that refer to one name it. Text that cards cut is complete in their tooltips. The picture follows the
// reader's light or dark scheme.
func SVG(g *trajectory.Graph) []byte {
	rounds, bridges := split(g)
	m := findActivity(g)
	var panels []*panel
	arrivals, departures := splitBridges(rounds, bridges)
	for i, r := range rounds {
		panels = append(panels, newPanels(r, m, departures[i], arrivals[i])...)
	}
	p := arrange(panels)
	d := &drawing{}
	head := d.header(g, m, max(p.w, minPage))
	w, h := max(p.w, minPage)+2*margin, p.h+head+2*margin
	var out drawing
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n", px(w), px(h), px(w), px(h))
	out.printf("<title>%s</title>\n", escape(graphTitle(g)))
	out.b.WriteString(style(g))
	out.printf(`<rect class="page" width="%s" height="%s"/>`+"\n", px(w), px(h))
	out.printf(`<g transform="translate(%d %d)">`+"\n", margin, margin)
	out.b.WriteString(d.b.String())
	d.b.Reset()
	out.printf(`<g transform="translate(0 %s)">`+"\n", px(head))
	d.page(p)
	out.b.WriteString(d.b.String())
	out.b.WriteString("</g>\n</g>\n</svg>\n")
	return []byte(out.b.String())
}

// drawing writes the elements of an SVG.
type drawing struct{ b strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// px formats a length with a tenth of a pixel.
func px(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

// relationClass returns the style class of an edge; relations without a class are written next to their edges.
func relationClass(r trajectory.Relation) string {
	switch r {
	case trajectory.Triggers, trajectory.HasConclusion, trajectory.Generates, trajectory.RefersTo, trajectory.ContinuesTo:
		return string(r)
	default:
		return "other"
	}
}
