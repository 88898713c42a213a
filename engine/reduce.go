package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/flow"
)

// Reduce combines the present value of a key (which exists if ok) with the written one.
func Reduce(red flow.Reducer, old Value, ok bool, v Value) (Value, error) {
	if !ok || old == nil || red == flow.ReduceNone || red == flow.ReduceReplace {
		if red == flow.ReduceAppend {
			return asList(v), nil
		}
		return v, checkOperand(red, v)
	}
	switch red {
	case flow.ReduceAppend:
		return append(slices.Clip(slices.Clone(asList(old).([]any))), asList(v).([]any)...), nil
	case flow.ReduceMerge:
		a, b, err := mergeOperands(old, v)
		if err != nil {
			return nil, err
		}
		m := maps.Clone(a)
		maps.Copy(m, b)
		return m, nil
	case flow.ReduceMax, flow.ReduceMin, flow.ReduceSum:
		return reduceNumber(red, old, v)
	default:
		return nil, fmt.Errorf("unknown reducer %q", red)
	}
}

// checkReduce returns the error of Reduce, without combining objects. The present value may be
// an *Object.
func checkReduce(red flow.Reducer, old Value, ok bool, v Value) error {
	if red != flow.ReduceMerge || !ok || old == nil {
		_, err := Reduce(red, old, ok, v)
		return err
	}
	if _, is := old.(*Object); is {
		old = map[string]any{}
	}
	_, _, err := mergeOperands(old, v)
	return err
}

// mergeOperands returns the operands of a merge.
func mergeOperands(old, v Value) (a, b map[string]any, err error) {
	a, ok1 := old.(map[string]any)
	b, ok2 := v.(map[string]any)
	if !ok1 || !ok2 {
		return nil, nil, fmt.Errorf("merge needs objects, got %T and %T", old, v)
	}
	return a, b, nil
}

func asList(v Value) Value {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func checkOperand(red flow.Reducer, v Value) error {
	switch red {
	case flow.ReduceMax, flow.ReduceMin, flow.ReduceSum:
		if _, ok := toFloat(v); !ok {
			return fmt.Errorf("%s needs a number, got %T", red, v)
		}
	case flow.ReduceMerge:
		if _, ok := v.(map[string]any); !ok {
			return fmt.Errorf("merge needs an object, got %T", v)
		}
	default:
	}
	return nil
}

func reduceNumber(red flow.Reducer, old, v Value) (Value, error) {
	a, ok1 := toFloat(old)
	b, ok2 := toFloat(v)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%s needs numbers, got %T and %T", red, old, v)
	}
	switch {
	case red == flow.ReduceMax && b > a, red == flow.ReduceMin && b < a:
		return v, nil
	case red != flow.ReduceSum:
		return old, nil
	}
	i, ok1 := old.(int64)
	j, ok2 := v.(int64)
	if ok1 && ok2 {
		if sum := i + j; (sum > i) == (j > 0) {
			return sum, nil
		}
	}
	return checkFloat(a + b)
}

func toFloat(v Value) (float64, bool) {
	switch t := v.(type) {
	case int64:
		return float64(t), true
	case float64:
		return t, true
	}
	return 0, false
}
