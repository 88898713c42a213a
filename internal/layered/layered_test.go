package layered

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestInversionsAreThePairsInDescendingOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		list := make([]int, r.IntN(40))
		for i := range list {
			list[i] = r.IntN(20)
		}
		want := 0
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a > b {
					want++
				}
			}
		}
		if got := inversions(list); got != want {
			t.Fatalf("%v has %d inversions, expected %d", list, got, want)
		}
	}
}

func TestOrderRemovesAvoidableCrossings(t *testing.T) {
	// 0 and 1 above 2 and 3, crosswise; 4 below 2.
	d := Drawing{
		Rows: [][]int{{0, 1}, {2, 3}, {4}},
		Up:   [][]int{nil, nil, {1}, {0}, {2}},
		Down: [][]int{{3}, {2}, {4}, nil, nil},
	}
	if n := d.crossings(); n != 1 {
		t.Fatalf("%d crossings before, expected 1", n)
	}
	d.Order()
	if n := d.crossings(); n != 0 {
		t.Errorf("%d crossings left in %v", n, d.Rows)
	}
	for i, row := range d.Rows {
		if slices.Sort(row); !slices.Equal(row, [][]int{{0, 1}, {2, 3}, {4}}[i]) {
			t.Errorf("row %d has %v", i, row)
		}
	}
}

func TestDepthsAreLongestPaths(t *testing.T) {
	if got := Depths([][]int{{1, 2}, {2}, {3}, nil, {3}}); !slices.Equal(got, []int{0, 1, 2, 3, 0}) {
		t.Errorf("the depths are %v", got)
	}
}
