package engine

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"testing"

	"github.com/weir-run/weir/flow"
	"pgregory.net/rapid"
)

// Objects of many ages are merged into in any order, as lanes, snapshots and retries do; each
// must be what copying gives, and so must what is said of its size.
func TestAMergeChangesNoOtherObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := make(map[string]any)
		for i := range rapid.IntRange(0, 2*minObject).Draw(t, "initial") {
			first[fmt.Sprint("m", i)] = int64(i)
		}
		var g growing
		start := State{}.with("o", held(flow.ReduceMerge, first))
		got, want := []State{start}, []map[string]any{first}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			from := max(0, len(got)-1-rapid.IntRange(0, 3).Draw(t, "from"))
			more := make(map[string]any)
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 3, 40}).Draw(t, "more") {
				more[fmt.Sprint("m", rapid.IntRange(0, 90).Draw(t, "name"))] = fmt.Sprint(i)
			}
			old, _ := got[from].stored("o")
			if n := sizeOf(want[from]) + growthOf(old, more); n != sizeOf(mergedCopy(want[from], more)) {
				t.Fatalf("the size is %d, expected %d", n, sizeOf(mergedCopy(want[from], more)))
			}
			got = append(got, g.apply(got[from], flow.ReduceMerge, StateChange{Key: "o", Value: more}))
			want = append(want, mergedCopy(want[from], more))
		}
		for i := range got {
			sameObject(t, got[i], want[i])
		}
	})
}

func mergedCopy(old, more map[string]any) map[string]any {
	m := maps.Clone(old)
	maps.Copy(m, more)
	return m
}

// sameObject checks the members of an object of the state, read one by one and as a whole.
func sameObject(t *rapid.T, s State, want map[string]any) {
	members, _ := s.Members().Get("o")
	if o, ok := members.(*Object); ok {
		if o.Len() != len(want) {
			t.Fatalf("the object has %d members, expected %d", o.Len(), len(want))
		}
		for name, w := range want {
			if v, ok := o.Get(name); !ok || v != w {
				t.Fatalf("the member %s is %v, expected %v", name, v, w)
			}
		}
	} else if len(want) >= 2*minObject && !reflect.DeepEqual(members, want) {
		t.Fatalf("the object is %v, expected %v", members, want)
	}
	if v, _ := s.Get("o"); !reflect.DeepEqual(v, want) {
		t.Fatalf("the object is %v, expected %v", v, want)
	}
	if all := s.All()["o"]; !reflect.DeepEqual(all, want) {
		t.Fatalf("all of the state is %v, expected %v", all, want)
	}
}

// TestAMergeAllocatesWhatItAdds counts the bytes that merges of one member allocate. A copy of
// the object would take a hundred times as many.
func TestAMergeAllocatesWhatItAdds(t *testing.T) {
	const merges, perMerge = 16_000, 8 << 10
	r := &Run{plan: &Plan{reducers: map[string]flow.Reducer{"o": flow.ReduceMerge}}}
	r.measured()
	n := &nodeState{scope: &scope{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range merges {
		r.write(n, []StateChange{{Key: "o", Value: map[string]any{fmt.Sprint("member", i): int64(i)}}})
		members, _ := r.state.Members().Get("o")
		if v, ok := memberOf(members, fmt.Sprint("member", i/2)); !ok || v != int64(i/2) {
			t.Fatalf("member %d is %v", i/2, v)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / merges; each > perMerge {
		t.Errorf("a merge of one member allocates %d bytes in an object of %d members", each, merges)
	}
	all, _ := r.state.Get("o")
	if want := len("o") + sizeOf(all); len(all.(map[string]any)) != merges || r.sizes.all != want {
		t.Errorf("%d members of %d bytes, expected %d of %d", len(all.(map[string]any)), r.sizes.all, merges, want)
	}
}

func TestAMergeOfWhatIsNoObjectIsRefused(t *testing.T) {
	large := make(map[string]any)
	for i := range 2 * minObject {
		large[fmt.Sprint(i)] = int64(i)
	}
	for name, old := range map[string]Value{"small": map[string]any{}, "large": newObject(large), "text": "x", "null": nil} {
		for _, v := range []Value{"x", nil, map[string]any{"a": "b"}} {
			before := old
			if o, ok := old.(*Object); ok {
				before = o.All()
			}
			_, want := Reduce(flow.ReduceMerge, before, true, v)
			if got := checkReduce(flow.ReduceMerge, old, true, v); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %v: %v, expected %v", name, v, got, want)
			}
		}
	}
}
