package expr

import (
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// The functions of CEL that sort: LIST.sort(), and what the macro sortBy calls.
const (
	fnSort   = "sort"
	fnSortBy = "@sortByAssociatedKeys"
)

// sorting replaces the calls that sort, nil for other calls. CEL's refuse a list with ints and
// doubles, do not keep the order of equal elements, and do not name the element that cannot be
// compared.
func sorting(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	if n := call.Function(); n != fnSort && n != fnSortBy {
		return nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if plain, has := unwrapOptionals(call.Function(), args); has {
			if args = plain; types.IsError(args[0]) {
				return args[0]
			}
		}
		for _, a := range args {
			if types.IsUnknownOrError(a) {
				return a
			}
			if a.Type() != types.ListType {
				return undefined(call.Function(), args...)
			}
		}
		return sortedByKeys(args[0], args[len(args)-1])
	})
}

// sortedByKeys returns the elements of a list in the order of keys, one for each. Equal ones
// keep their order.
func sortedByKeys(list, keys ref.Val) ref.Val {
	es, ks := elements(list), elements(keys)
	order := make([]int, len(es))
	for i := range order {
		order[i] = i
		if err := checkComparable(ks, i); err != nil {
			return err
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c, _ := compareValues(ks[a], ks[b])
		return c
	})
	out := make([]ref.Val, len(es))
	for i, at := range order {
		out[i] = es[at]
	}
	return listOf(out)
}

// checkComparable reports why the key at a position cannot be compared with the first.
func checkComparable(keys []ref.Val, i int) ref.Val {
	switch keys[i].(type) {
	case types.String, types.Timestamp, types.Duration, types.Bool:
	default:
		if !number(keys[i]) {
			return types.NewErr("element %d cannot be sorted: it is sorted by %s, expected a number, text, time, duration or bool", i, kind(keys[i]))
		}
	}
	if keys[i].Type() != keys[0].Type() && (!number(keys[i]) || !number(keys[0])) {
		return types.NewErr("the list cannot be sorted: element 0 is sorted by %s, and element %d by %s", kind(keys[0]), i, kind(keys[i]))
	}
	return nil
}
