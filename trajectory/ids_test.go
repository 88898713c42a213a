package trajectory

import (
	"slices"
	"testing"
)

func TestIdsAreInTheOrderOfTypesAndNumbers(t *testing.T) {
	var want []ID
	types := Types()
	slices.Sort(types)
	for _, of := range types {
		for _, n := range []int{0, 1, 9, 10, 99_999, 100_000, 999_999, 1_000_000} {
			want = append(want, MakeID(of, n))
		}
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	if got = Distinct(append(got, want...)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
