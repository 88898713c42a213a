package dependents_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/dependents"
)

// links has sessions 1 to 3, where 2 continues 1, and runs 7 and 5, which are forks of session 2
// and of each other.
func links() dependents.Trees {
	return dependents.Trees{-1: {-2}, -2: {7, 5, -2}, 7: {5}, 5: {7}}
}

func TestEverythingThatDependsOnATreeIsFoundOnce(t *testing.T) {
	got := links().With([]int64{-1, -3})
	slices.Sort(got)
	if want := []int64{-3, -2, -1, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	roots := []int64{-1}
	if got, want := links().Forks(roots), []int64{-2, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("forks %v, want %v", got, want)
	}
	if !slices.Equal(roots, []int64{-1}) {
		t.Errorf("the roots have become %v", roots)
	}
}

func TestSessionsThatOthersNeedOrProcessesExecuteAreKept(t *testing.T) {
	names := func(roots []int64) (out []store.Tree, err error) {
		for _, r := range roots {
			out = append(out, store.Tree{Session: strconv.FormatInt(r, 10)})
		}
		return out, nil
	}
	selected := map[int64]bool{-1: true, -2: true, -3: true, -4: true}
	roots, kept, err := links().Prunable(selected, map[int64]bool{-4: true}, names)
	if err != nil || !slices.Equal(roots, []int64{-3}) {
		t.Errorf("deleted are %v, %v", roots, err)
	}
	var got []string
	for _, k := range kept {
		text := k.Session + " busy " + strconv.FormatBool(k.Busy)
		for _, f := range k.Forks {
			text += " " + f.Session
		}
		got = append(got, text)
	}
	if want := []string{"-1 busy false 5 7", "-2 busy false 5 7", "-4 busy true"}; !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	failed := errors.New("no names")
	_, _, err = links().Prunable(selected, nil, func([]int64) ([]store.Tree, error) { return nil, failed })
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}
