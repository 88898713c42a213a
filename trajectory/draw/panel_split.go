package draw

import "github.com/weir-run/weir/internal/layered"

// panelSplit has the panel of each block of a round.
type panelSplit struct {
	count   int
	panelOf []int
}

// splitPanels divides a round that is too high between layers that few lines cross.
func (f *blockRound) splitPanels() panelSplit {
	next := make([][]int, len(f.blocks))
	for _, t := range f.connectors {
		next[t.from] = append(next[t.from], t.to)
	}
	layer := layered.Depths(next)
	var highs []float64
	var shelf []*block
	for i, l := range layer {
		if f.isHeader[i] {
			shelf = append(shelf, &f.blocks[i])
			continue
		}
		for len(highs) <= l {
			highs = append(highs, 0)
		}
		highs[l] = max(highs[l], f.blocks[i].h+gapY)
	}
	head := panelHead + layOutHeaders(shelf, cardWidth)
	high := head
	for _, h := range highs {
		high += h
	}
	out := panelSplit{count: 1, panelOf: make([]int, len(f.blocks))}
	if high <= maxPanelHeight {
		return out
	}
	highs[0] += head
	piece := splitEvenly(highs, f.crossing(layer, len(highs)))
	for i, l := range layer {
		if !f.isHeader[i] {
			out.panelOf[i] = piece[l]
			out.count = max(out.count, piece[l]+1)
		}
	}
	return out
}

// crossing counts the connectors that cross the line above each layer.
func (f *blockRound) crossing(layer []int, layers int) []int {
	out := make([]int, layers+1) // at first by how much the number of a layer differs from the one above
	for _, t := range f.connectors {
		if from, to := layer[t.from], layer[t.to]; from < to {
			out[from+1]++
			out[to+1]--
		}
	}
	for l := 1; l < layers; l++ {
		out[l] += out[l-1]
	}
	return out[:layers]
}

// splitEvenly divides layers into the smallest number of pieces that are not too high, of similar heights.
func splitEvenly(highs []float64, crossing []int) []int {
	best, count := fillPieces(highs, crossing, maxPanelHeight)
	low, high := 0.0, float64(maxPanelHeight)
	for high-low > 1 {
		middle := (low + high) / 2
		if piece, n := fillPieces(highs, crossing, middle); n <= count {
			best, high = piece, middle
		} else {
			low = middle
		}
	}
	return best
}

// fillPieces fills pieces up to a limit, and ends them where few lines cross. A layer that is too high by itself gets
// a piece of its own.
func fillPieces(highs []float64, crossing []int, limit float64) (piece []int, count int) {
	piece = make([]int, len(highs))
	begin, used := 0, 0.0
	for l := 0; l < len(highs); l++ {
		if used > 0 && used+highs[l] > limit && (used > maxPanelHeight/4 || highs[l] < maxPanelHeight*3/4) {
			end := l
			for back, left := l, used; back > begin+1 && left > limit*0.75; back-- {
				if crossing[back] < crossing[end] {
					end = back
				}
				left -= highs[back-1]
			}
			count++
			begin, l, used = end, end, 0
		}
		piece[l] = count
		used += highs[l]
	}
	return piece, count + 1
}
