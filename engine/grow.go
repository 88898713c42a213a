package engine

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/flow"
)

// growing tracks the lists under the `append` reducer that a run extends in place, by their
// first element. Each has spare capacity that only this run writes to; the state holds it
// without that capacity, so that snapshots of the state never change. The zero value is
// empty.
type growing map[*Value][]Value

// maxGrowing limits the number of lists with spare capacity, including lists of lanes that
// have ended.
const maxGrowing = 256

// extend returns the list with more appended. The amortised cost is proportional to more
// while each extension starts from the previous one.
func (g *growing) extend(list, more []Value) []Value {
	if len(more) == 0 {
		return list
	}
	if len(list) == 0 {
		return more
	}
	first := &list[0]
	full, own := (*g)[first]
	if !own || len(full) != len(list) { // the list belongs to another run, or to a snapshot that was extended before
		full = make([]Value, len(list), len(list)+len(list)/4+len(more)+8)
		copy(full, list)
	} else {
		delete(*g, first)
	}
	full = append(full, more...)
	if *g == nil || len(*g) >= maxGrowing {
		*g = make(growing)
	}
	(*g)[&full[0]] = full
	return slices.Clip(full)
}

// MaxStateBytes is the maximum size of a run's state: the length of its strings and keys,
// plus 8 bytes for each other value.
const MaxStateBytes = 64 << 20

// sizeOf returns a value's share of MaxStateBytes.
func sizeOf(v Value) int {
	switch v := v.(type) {
	case string:
		return len(v) + 8
	case []any:
		n := 8
		for _, e := range v {
			n += sizeOf(e)
		}
		return n
	case map[string]any:
		n := 8
		for k, e := range v { // order: the result is a sum
			n += len(k) + sizeOf(e)
		}
		return n
	}
	return 8
}

// stateSizes has the sizes of a state's values by key, and their sum.
type stateSizes struct {
	of  map[string]int
	all int
}

func (s *stateSizes) set(key string, n int) {
	s.all += n - s.of[key]
	s.of[key] = n
}

// measured returns the sizes of the run's state. The first call measures all of it.
func (r *Run) measured() *stateSizes {
	if r.sizes == nil {
		r.sizes = &stateSizes{of: make(map[string]int)}
		for _, k := range r.state.Keys() {
			v, _ := r.state.Get(k)
			r.sizes.set(k, len(k)+sizeOf(v))
		}
	}
	return r.sizes
}

// measure records a change that was applied to the run's state as it was before.
func (r *Run) measure(before State, c StateChange) {
	merged, isMerge := c.Value.(map[string]any)
	isMerge = isMerge && r.plan.reducers[c.Key] == flow.ReduceMerge
	switch s := r.sizes; {
	case s == nil:
	case c.Delete:
		s.set(c.Key, 0)
		delete(s.of, c.Key)
	case r.plan.reducers[c.Key] == flow.ReduceAppend && s.of[c.Key] > 0:
		s.set(c.Key, s.of[c.Key]+sizeOf(c.Value))
	case isMerge && s.of[c.Key] > 0:
		old, _ := before.stored(c.Key)
		s.set(c.Key, s.of[c.Key]+growthOf(old, merged))
	default:
		v, _ := r.state.Get(c.Key)
		s.set(c.Key, len(c.Key)+sizeOf(v))
	}
}

// checkSize refuses changes that would make the state larger than MaxStateBytes.
func (r *Run) checkSize(path string, changes []StateChange) *Error {
	s := r.measured()
	before := s.all
	seen := make(map[string]int)
	for _, c := range changes {
		n := len(c.Key) + sizeOf(c.Value)
		if red := r.plan.reducers[c.Key]; red == flow.ReduceAppend || red == flow.ReduceMerge {
			n += s.of[c.Key] + seen[c.Key]
		}
		if c.Delete {
			n = 0
		}
		seen[c.Key] = n
	}
	after := before
	for key, n := range seen { // order: the result is a sum
		after += n - s.of[key]
	}
	if after <= MaxStateBytes || after <= before {
		return nil
	}
	return &Error{
		Code: CodeStateSize, Node: path, Permanent: true,
		Message: fmt.Sprintf("the state would have %d bytes, and the limit is %d; it has %d now", after, MaxStateBytes, before),
		Hint:    "keep large data in files or pass it through ports, and delete keys that are no longer read",
	}
}
