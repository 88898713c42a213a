package draw

// pieces says in which panel of a round each block stands.
type pieces struct {
	count int
	of    []int
}

// cut cuts a round that is too high between layers, where few lines lead on.
func (f *folded) cut() pieces {
	next := make([][]int, len(f.blocks))
	for _, t := range f.ties {
		next[t.from] = append(next[t.from], t.to)
	}
	layer := depths(next)
	var highs []float64
	var shelf []*block
	for i, l := range layer {
		if f.shelf[i] {
			shelf = append(shelf, &f.blocks[i])
			continue
		}
		for len(highs) <= l {
			highs = append(highs, 0)
		}
		highs[l] = max(highs[l], f.blocks[i].h+gapY)
	}
	head := panelHead + shelve(shelf, cardWidth)
	high := head
	for _, h := range highs {
		high += h
	}
	out := pieces{count: 1, of: make([]int, len(f.blocks))}
	if high <= tallest {
		return out
	}
	highs[0] += head
	piece := breaks(highs, f.crossing(layer, len(highs)))
	for i, l := range layer {
		if !f.shelf[i] {
			out.of[i] = piece[l]
			out.count = max(out.count, piece[l]+1)
		}
	}
	return out
}

// crossing counts the ties that cross the line above each layer.
func (f *folded) crossing(layer []int, layers int) []int {
	out := make([]int, layers)
	for _, t := range f.ties {
		for l := layer[t.from] + 1; l <= layer[t.to]; l++ {
			out[l]++
		}
	}
	return out
}

// breaks puts layers into as few pieces as are not too high, and these of about
// equal heights.
func breaks(highs []float64, crossing []int) []int {
	best, count := filled(highs, crossing, tallest)
	low, high := 0.0, float64(tallest)
	for high-low > 1 {
		middle := (low + high) / 2
		if piece, n := filled(highs, crossing, middle); n <= count {
			best, high = piece, middle
		} else {
			low = middle
		}
	}
	return best
}

// filled fills pieces up to a limit, and ends them where few lines cross. What
// is too high by itself stands below a little that comes before.
func filled(highs []float64, crossing []int, limit float64) (piece []int, count int) {
	piece = make([]int, len(highs))
	begin, used := 0, 0.0
	for l := 0; l < len(highs); l++ {
		if used > 0 && used+highs[l] > limit && (used > tallest/4 || highs[l] < tallest*3/4) {
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
