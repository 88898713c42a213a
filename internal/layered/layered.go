// Package layered orders the vertices of a layered drawing, in which every line leads from
// one row to the next. It must not know what the vertices are or how they are drawn.
package layered

import (
	"cmp"
	"slices"
)

// Drawing is a drawing in rows. Vertices are numbered from 0.
type Drawing struct {
	// Rows are the vertices of each row, from left to right.
	Rows [][]int
	// Up and Down are the vertices of the row above and of the row below that a vertex is
	// connected to.
	Up, Down [][]int
	// Class decides between vertices with the same place; nil is no preference.
	Class []int
}

// Depths returns for each vertex the length of the longest path to it. next are the vertices
// that lines lead to; they form no cycle.
func Depths(next [][]int) []int {
	out := make([]int, len(next))
	open := make([]int, len(next))
	for _, list := range next {
		for _, to := range list {
			open[to]++
		}
	}
	var free []int
	for i, n := range open {
		if n == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[0]
		free = free[1:]
		for _, to := range next[i] {
			out[to] = max(out[to], out[i]+1)
			if open[to]--; open[to] == 0 {
				free = append(free, to)
			}
		}
	}
	return out
}

// sweeps is the number of passes over the rows, alternately down and up. More rarely make a
// difference.
const sweeps = 16

// Order sorts each row by the mean position of the connected vertices, and keeps the order
// with the fewest crossings. Each pass takes time in proportion to the lines.
func (d *Drawing) Order() {
	best, least := cloneRows(d.Rows), d.crossings()
	for s := 0; s < sweeps && least > 0; s++ {
		at := d.places()
		for i := range d.Rows {
			if s%2 == 0 {
				d.arrange(d.Rows[i], at, d.Up)
			} else {
				d.arrange(d.Rows[len(d.Rows)-1-i], at, d.Down)
			}
		}
		if n := d.crossings(); n < least {
			best, least = cloneRows(d.Rows), n
		}
	}
	d.Rows = best
}

func cloneRows(rows [][]int) [][]int {
	out := make([][]int, len(rows))
	for i, r := range rows {
		out[i] = slices.Clone(r)
	}
	return out
}

// places returns the position of each vertex in its row.
func (d *Drawing) places() []int {
	at := make([]int, len(d.Up))
	for _, row := range d.Rows {
		for i, v := range row {
			at[v] = i
		}
	}
	return at
}

// arrange sorts one row and updates at, the position of each vertex in its row.
func (d *Drawing) arrange(row, at []int, connected [][]int) {
	middle := make(map[int]float64, len(row))
	for i, v := range row {
		middle[v] = float64(i)
		if list := connected[v]; len(list) > 0 {
			sum := 0
			for _, u := range list {
				sum += at[u]
			}
			middle[v] = float64(sum) / float64(len(list))
		}
	}
	slices.SortStableFunc(row, func(a, b int) int {
		return cmp.Or(cmp.Compare(middle[a], middle[b]), cmp.Compare(d.classOf(a), d.classOf(b)))
	})
	for i, v := range row {
		at[v] = i
	}
}

func (d *Drawing) classOf(v int) int {
	if d.Class == nil {
		return 0
	}
	return d.Class[v]
}

// crossings counts the crossings of lines between rows.
func (d *Drawing) crossings() int {
	at := d.places()
	n := 0
	for _, row := range d.Rows {
		var ends []int // lower ends, in the order of the upper ones
		for _, v := range row {
			from := len(ends)
			for _, u := range d.Down[v] {
				ends = append(ends, at[u])
			}
			slices.Sort(ends[from:])
		}
		n += inversions(ends)
	}
	return n
}

// inversions counts the pairs in descending order, with a Fenwick tree of counts.
func inversions(list []int) int {
	if len(list) < 2 {
		return 0
	}
	seen := make([]int, slices.Max(list)+2)
	n := 0
	for i, v := range list {
		n += i // all earlier numbers, less those that are not larger
		for at := v + 1; at > 0; at -= at & -at {
			n -= seen[at]
		}
		for at := v + 1; at < len(seen); at += at & -at {
			seen[at]++
		}
	}
	return n
}
