package node_test

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

func reducers(key string) flow.Reducer {
	return map[string]flow.Reducer{"log": flow.ReduceAppend, "seen": flow.ReduceMerge, "sum": flow.ReduceSum}[key]
}

// TestANodeReadsItsOwnChanges writes keys of each reducer, and reads them between the writes or only after the last.
func TestANodeReadsItsOwnChanges(t *testing.T) {
	for _, between := range []bool{false, true} {
		base := engine.NewOverlay(engine.State{})
		for key, v := range map[string]any{"log": []any{"a"}, "seen": map[string]any{"a": int64(1)}, "sum": int64(1), "plain": "old"} {
			base.Apply(reducers(key), engine.StateChange{Key: key, Value: v})
		}
		s := node.NewState(base.State(), reducers)
		for _, set := range []struct {
			key string
			v   any
		}{
			{"log", "b"},
			{"seen", map[string]any{"b": int64(2)}},
			{"sum", int64(2)},
			{"plain", "first"},
			{"plain", "second"},
			{"new", true},
			{"log", nil},
			{"log", []any{"c"}},
			{"seen", nil},
			{"seen", map[string]any{"c": int64(3)}},
			{"new", nil},
			{"gone", int64(1)},
			{"gone", nil},
			{"gone", "back"},
		} {
			if set.v == nil {
				s.Delete(set.key)
			} else if err := s.Set(set.key, set.v); err != nil {
				t.Fatal(err)
			}
			if between {
				s.Keys()
			}
		}
		want := map[string]any{"log": []any{"c"}, "seen": map[string]any{"c": int64(3)}, "sum": int64(3), "plain": "second", "gone": "back"}
		if got := s.All(); !reflect.DeepEqual(got, want) {
			t.Errorf("read between the writes %t: %v, expected %v", between, got, want)
		}
		if _, ok := s.Get("new"); ok {
			t.Error("a deleted key is read")
		}
		if old, _ := s.Snapshot().Get("plain"); old != "old" {
			t.Errorf("the state of the node's start has %v", old)
		}
	}
}

// TestReadingOwnChangesCostsWhatIsRead counts the bytes that a node allocates which writes a member or element, and reads
// one, again and again. Combining its changes anew for each would take a hundred times as many.
func TestReadingOwnChangesCostsWhatIsRead(t *testing.T) {
	const writes, perWrite = 4000, 16 << 10
	last, err := expr.Compile("state.seen[inputs.name] + state.log[inputs.at] + size(state.seen)")
	if err != nil {
		t.Fatal(err)
	}
	var inputs engine.Values
	ctx := node.NewCtx(t.Context(), node.Info{}, nil, node.NewState(engine.State{}, reducers), nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range int64(writes) {
		name := fmt.Sprint("m", i)
		if err := ctx.State().Update(map[string]any{"seen": map[string]any{name: i}, "log": []any{i}}); err != nil {
			t.Fatal(err)
		}
		inputs = engine.Values{{Name: "name", Value: name}, {Name: "at", Value: i}}
		v, err := last.Eval(stateAnd{&ctx, inputs})
		if err != nil || v != 3*i+1 {
			t.Fatalf("%v %v, expected %d", v, err, 3*i+1)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / writes; each > perWrite {
		t.Errorf("a write and a read of one member allocate %d bytes, beside %d others", each, writes)
	}
}

// stateAnd is what expressions read: a node's state, and inputs.
type stateAnd struct {
	ctx    *node.Ctx
	inputs engine.Values
}

func (v stateAnd) Lookup(name string) (any, bool) {
	if name == "inputs" {
		return v.inputs.Map(), true
	}
	return v.ctx.Lookup(name)
}
