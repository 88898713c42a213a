package codegen

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// stateWrites returns the writes that turn the state into the one that the code left.
// Unchanged keys are not written. Code leaves whole values; for a key with a reducer, the
// write is the operand that turns the snapshot's value into the new one, so that it
// combines with concurrent writes.
func stateWrites(state *node.State, r *Execution) (map[string]any, error) {
	operands := make(map[string]any, len(r.Updates))
	for _, key := range slices.Sorted(maps.Keys(r.Updates)) {
		now, there := state.Get(key)
		v, err := engine.Normalize(r.Updates[key])
		if err != nil {
			return nil, invalidValue(key, err)
		}
		if there && reflect.DeepEqual(now, v) {
			continue
		}
		if operands[key], err = operand(state.Reducer(key), now, there, v); err != nil {
			return nil, &engine.Error{
				Code: engine.CodeStateReducer, Permanent: true,
				Message: fmt.Sprintf("state key %q: %v", key, err),
				Hint:    "code leaves the whole new value of a key; the key's reducer must be able to produce that value",
			}
		}
	}
	return operands, nil
}

// applyUpdate writes the changes of the code to the state; on an error none of them.
func applyUpdate(state *node.State, r *Execution) error {
	operands, err := stateWrites(state, r)
	if err != nil {
		return err
	}
	if err := state.Update(operands); err != nil {
		return err
	}
	for _, key := range r.Delete {
		state.Delete(key)
	}
	return nil
}

func invalidValue(key string, err error) error {
	return &engine.Error{
		Code: engine.CodeCodeValue, Permanent: true, Message: fmt.Sprintf("the code left a value under %q that cannot be stored: %v", key, err),
	}
}

// operand returns the write that makes a reducer turn now into v.
func operand(red flow.Reducer, now engine.Value, there bool, v engine.Value) (engine.Value, error) {
	if !there || now == nil {
		return v, nil
	}
	switch red {
	case flow.ReduceAppend:
		return appended(now, v)
	case flow.ReduceMerge:
		return merged(now, v)
	case flow.ReduceSum:
		return added(now, v)
	case flow.ReduceMax, flow.ReduceMin:
		after, err := engine.Reduce(red, now, true, v)
		if err == nil && !reflect.DeepEqual(after, v) {
			err = fmt.Errorf("the code left %v, which the reducer %s cannot produce from the present value %v", v, red, now)
		}
		return v, err
	case flow.ReduceNone, flow.ReduceReplace:
	}
	return v, nil
}

// appended returns the elements that v has after the present list; a value that is not a
// list is one element to append.
func appended(now, v engine.Value) (engine.Value, error) {
	list, ok := v.([]any)
	if !ok {
		return v, nil
	}
	before, ok := now.([]any)
	if !ok {
		before = []any{now}
	}
	if len(list) < len(before) || !reflect.DeepEqual(list[:len(before)], before) {
		return nil, fmt.Errorf("the code left a list that does not begin with the present %d elements, but the list can only be appended to", len(before))
	}
	return list[len(before):], nil
}

// merged returns the members of v that differ from the present ones.
func merged(now, v engine.Value) (engine.Value, error) {
	before, ok1 := now.(map[string]any)
	after, ok2 := v.(map[string]any)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("merge requires objects, got %T and %T", now, v)
	}
	changed := make(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[k]; !ok {
			return nil, fmt.Errorf("the code removed %q from an object that can only be merged", k)
		}
	}
	for k, e := range after {
		if old, ok := before[k]; !ok || !reflect.DeepEqual(old, e) {
			changed[k] = e
		}
	}
	return changed, nil
}

// added returns the difference of two numbers.
func added(now, v engine.Value) (engine.Value, error) {
	a, isInt := now.(int64)
	b, isInt2 := v.(int64)
	if isInt && isInt2 && (b >= a) == (b-a >= 0) {
		return b - a, nil
	}
	x, ok1 := float(now)
	y, ok2 := float(v)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("sum requires numbers, got %T and %T", now, v)
	}
	return y - x, nil
}

func float(v engine.Value) (float64, bool) {
	switch t := v.(type) {
	case int64:
		return float64(t), true
	case float64:
		return t, true
	}
	return 0, false
}
