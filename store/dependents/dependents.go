// Package dependents computes which trees of runs and sessions are deleted together. Databases
// read which trees depend on which. It must not know databases or what trees contain.
package dependents

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-run/weir/store"
)

// Trees has, by the root of a tree, the roots of the trees that share its past. The root of a
// session is the negative number of the session, that of a run its number.
type Trees map[int64][]int64

// With returns roots and everything that depends on them, each once. It may change roots.
func (d Trees) With(roots []int64) []int64 {
	seen := map[int64]bool{}
	out := []int64{}
	for len(roots) > 0 {
		r := roots[len(roots)-1]
		if roots = roots[:len(roots)-1]; !seen[r] {
			seen[r] = true
			out = append(out, r)
			roots = append(roots, d[r]...)
		}
	}
	return out
}

// Forks returns what depends on roots, without these: sessions first, then runs, each by age.
func (d Trees) Forks(roots []int64) []int64 {
	forks := slices.DeleteFunc(d.With(slices.Clone(roots)), func(r int64) bool { return slices.Contains(roots, r) })
	slices.SortFunc(forks, func(a, b int64) int {
		if a < 0 != (b < 0) {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(max(a, -a), max(b, -b))
	})
	return forks
}

// Prunable divides the selected sessions, the oldest first, into those that may be deleted and
// those that are kept: because a tree that is not selected depends on them, or because a process
// executes a run of them or of what depends on them. Selected and owned are sets of roots; names
// returns the names of roots in their order.
func (d Trees) Prunable(
	selected, owned map[int64]bool, names func(roots []int64) ([]store.Tree, error),
) (roots []int64, kept []store.KeptSession, err error) {
	for _, root := range slices.Backward(slices.Sorted(maps.Keys(selected))) { // negative numbers: the oldest first
		stay := slices.DeleteFunc(d.Forks([]int64{root}), func(r int64) bool { return selected[r] })
		busy := slices.ContainsFunc(d.With([]int64{root}), func(r int64) bool { return owned[r] })
		if len(stay) == 0 && !busy {
			roots = append(roots, root)
			continue
		}
		trees, err := names(append([]int64{root}, stay...))
		if err != nil {
			return nil, nil, err
		}
		kept = append(kept, store.KeptSession{Session: trees[0].Session, Forks: trees[1:], Busy: busy})
	}
	return roots, kept, nil
}
