package draw

// gapX is the distance of neighbours in a row, pixels.
const gapX = 26

// rounds of place: the first ones pass positions down and up, the last ones weigh both sides.
const (
	carryRounds = 12
	weighRounds = 12
)

// place sets the x of each vertex so that segments are as straight as the order of the rows allows; the leftmost edge
// is 0, and the width is returned.
func (l *layers) place() float64 {
	for _, row := range l.rows {
		x := 0.0
		for _, v := range row {
			l.vertices[v].x = x + l.vertices[v].w/2
			x += l.vertices[v].w + gapX
		}
	}
	for i := range carryRounds + weighRounds {
		for j := range l.rows {
			row := l.rows[j]
			if i%2 == 1 {
				row = l.rows[len(l.rows)-1-j]
			}
			l.placeRow(row, i >= carryRounds || i%2 == 0, i >= carryRounds || i%2 == 1)
		}
	}
	left, right := 0.0, 0.0
	for i, v := range l.vertices {
		if i == 0 || v.x-v.w/2 < left {
			left = v.x - v.w/2
		}
		if i == 0 || v.x+v.w/2 > right {
			right = v.x + v.w/2
		}
	}
	for i := range l.vertices {
		l.vertices[i].x -= left
	}
	return right - left
}

// group is a sequence of neighbours in a row at minimum distance, with the sums of their weights and of the wanted
// positions of its first one.
type group struct {
	count       int
	weight, sum float64
}

func (g group) at() float64 { return g.sum / g.weight }

// placeRow minimises the weighted squares of the distances from the wanted positions, with the order and the gaps
// fixed. Neighbours that would overlap are pooled, the standard method for an ascending sequence (pool adjacent
// violators).
func (l *layers) placeRow(row []int, up, down bool) {
	offset := make([]float64, len(row))
	var groups []group
	for i, v := range row {
		if i > 0 {
			offset[i] = offset[i-1] + l.vertices[row[i-1]].w/2 + gapX + l.vertices[v].w/2
		}
		x, weight := l.wantedX(v, up, down)
		groups = append(groups, group{1, weight, weight * (x - offset[i])})
		for n := len(groups); n > 1 && groups[n-2].at() > groups[n-1].at(); n-- {
			a, b := groups[n-2], groups[n-1]
			groups = append(groups[:n-2], group{a.count + b.count, a.weight + b.weight, a.sum + b.sum})
		}
	}
	i := 0
	for _, g := range groups {
		for range g.count {
			l.vertices[row[i]].x = g.at() + offset[i]
			i++
		}
	}
}

// wantedX returns the mean position of the connected vertices on the given sides, and its weight. A vertex without
// connections there keeps its position.
func (l *layers) wantedX(v int, up, down bool) (x, weight float64) {
	here := &l.vertices[v]
	var links []weightedLink
	if up {
		links = append(links, here.up...)
	}
	if down {
		links = append(links, here.down...)
	}
	if len(links) == 0 {
		return here.x, 0.01
	}
	for _, k := range links {
		x += k.weight * l.vertices[k.to].x
		weight += k.weight
	}
	return x / weight, weight
}

// gap returns the space below a layer, which grows with the number of segments.
func (l *layers) gap(layer int) float64 {
	strands := 0
	for _, v := range l.rows[layer] {
		strands += len(l.vertices[v].down)
	}
	return gapY + min(30, 3*float64(max(0, strands-2)))
}
