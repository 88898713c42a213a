package graph

import (
	"cmp"
	"slices"
)

// spreadEnds separates the ends of lines that leave or enter one box, ordered by the
// position of their other ends.
func (p *picture) spreadEnds() {
	out, in := make([][]int, len(p.boxes)), make([][]int, len(p.boxes))
	for i := range p.lines {
		l := &p.lines[i]
		out[l.from] = append(out[l.from], i)
		in[l.to] = append(in[l.to], i)
	}
	for b := range p.boxes {
		p.spreadSide(out[b], p.boxes[b].w, func(l *routedEdge) (end *point, next point) { return &l.points[0], l.points[1] })
		p.spreadSide(in[b], p.boxes[b].w, func(l *routedEdge) (end *point, next point) {
			return &l.points[len(l.points)-1], l.points[len(l.points)-2]
		})
	}
}

// spreadSide separates the ends of lines at one side of a box of that width.
func (p *picture) spreadSide(lines []int, width float64, end func(*routedEdge) (*point, point)) {
	slices.SortStableFunc(lines, func(a, b int) int {
		_, x := end(&p.lines[a])
		_, y := end(&p.lines[b])
		return cmp.Compare(x.x, y.x)
	})
	const most = 22 // pixels between two ends
	step := min(most, (width-24)/float64(max(len(lines)-1, 1)))
	for i, l := range lines {
		e, _ := end(&p.lines[l])
		e.x += (float64(i) - float64(len(lines)-1)/2) * step
	}
}
