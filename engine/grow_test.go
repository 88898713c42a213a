package engine

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/flow"
	"pgregory.net/rapid"
)

// Lists of many ages are extended in any order, as lanes, snapshots and retries do; each
// must be what copying gives.
func TestExtendingAListChangesNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g growing
		got, want := [][]Value{{int64(0)}}, [][]Value{{int64(0)}}
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			from := max(0, len(got)-1-rapid.IntRange(0, 3).Draw(t, "from"))
			var more []Value
			for j := range rapid.IntRange(0, 3).Draw(t, "more") {
				more = append(more, int64(i*10+j))
			}
			got = append(got, g.extend(got[from], more))
			copied, err := Reduce(flow.ReduceAppend, want[from], true, more)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, copied.([]any))
		}
		if len(g) > maxGrowing {
			t.Fatalf("%d lists have room", len(g))
		}
		for i := range got {
			sameList(t, got[i], want[i])
		}
	})
}

// sameList checks that a list has these elements, and no room that others could write to.
func sameList(t *rapid.T, got, want []Value) {
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("the list is %v, expected %v", got, want)
	}
	if cap(got) != len(got) && len(got) > 8 {
		t.Fatal("a list has room that others write to")
	}
}

func TestAListIsExtendedWithoutCopyingIt(t *testing.T) {
	var g growing
	list, copies := []Value{int64(1)}, 0
	for i := range 10_000 {
		first := &list[0]
		if list = g.extend(list, []Value{int64(i)}); &list[0] != first {
			copies++
		}
	}
	if copies > 60 {
		t.Errorf("10,000 appends copy the list %d times", copies)
	}
}
