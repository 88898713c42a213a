package expr

import (
	"cmp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

func listLibrary() []cel.EnvOption {
	l := anyList()
	return []cel.EnvOption{
		method("sum", "list_sum", func(a ...ref.Val) ref.Val { return sum(a[0]) }, cel.DynType, l),
		method("avg", "list_avg", func(a ...ref.Val) ref.Val { return average(a[0]) }, cel.OptionalType(cel.DoubleType), l),
		method("min", "list_min", func(a ...ref.Val) ref.Val { return extreme("min", a[0], -1) }, cel.OptionalType(cel.DynType), l),
		method("max", "list_max", func(a ...ref.Val) ref.Val { return extreme("max", a[0], 1) }, cel.OptionalType(cel.DynType), l),
		method("unique", "list_unique", func(a ...ref.Val) ref.Val { return unique(a[0]) }, l, l),
		method("zip", "list_zip_list", func(a ...ref.Val) ref.Val { return zip(a[0], a[1]) }, l, l, l),
		global(fnGroup, "group", func(a ...ref.Val) ref.Val { return group(a[0]) }, anyMap(), l),
		cel.Macros(cel.ReceiverMacro("reduce", 4, reduceMacro), cel.ReceiverMacro("groupBy", 2, groupByMacro)),
	}
}

func sum(v ref.Val) ref.Val {
	var total ref.Val = types.Int(0)
	for i, e := range elements(v) {
		if !number(e) && e.Type() != types.DurationType {
			return types.NewErr("sum: element %d is %s, expected a number or a duration", i, kind(e))
		}
		if i == 0 {
			total = e
			continue
		}
		a, b := promote(total, e)
		adder, ok := a.(traits.Adder)
		if !ok || (a.Type() == types.DurationType) != (b.Type() == types.DurationType) {
			return types.NewErr("sum: the list has both numbers and durations")
		}
		if total = adder.Add(b); types.IsError(total) {
			return total
		}
	}
	return total
}

func average(v ref.Val) ref.Val {
	es := elements(v)
	if len(es) == 0 {
		return types.OptionalNone
	}
	total := 0.0
	for i, e := range es {
		d, ok := e.ConvertToType(types.DoubleType).(types.Double)
		if !ok || !number(e) {
			return types.NewErr("avg: element %d is %s, expected a number", i, kind(e))
		}
		total += float64(d)
	}
	return types.OptionalOf(types.Double(total / float64(len(es))))
}

// extreme returns the smallest element with sign -1, the largest with sign 1.
func extreme(name string, v ref.Val, sign int) ref.Val {
	es := elements(v)
	if len(es) == 0 {
		return types.OptionalNone
	}
	for i, e := range es {
		switch e.(type) {
		case types.String, types.Timestamp, types.Duration:
		default:
			if !number(e) {
				return types.NewErr("%s: element %d is %s, expected a number, text, time or duration", name, i, kind(e))
			}
		}
	}
	best := es[0]
	for _, e := range es[1:] {
		c, ok := compareValues(e, best)
		if !ok {
			return types.NewErr("%s: the list has both %s and %s", name, kind(best), kind(e))
		}
		if cmp.Compare(c, 0) == sign {
			best = e
		}
	}
	return types.OptionalOf(best)
}

func unique(v ref.Val) ref.Val {
	seen := make(map[string]bool)
	n := nativeConverter{left: maxComparedElements}
	var out []ref.Val
	for i, e := range elements(v) {
		key, err := n.json(e, 0)
		if err != nil {
			return types.NewErr("unique: element %d: %v", i, err)
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, e)
		}
	}
	return listOf(out)
}

func zip(a, b ref.Val) ref.Val {
	x, y := elements(a), elements(b)
	out := make([]ref.Val, min(len(x), len(y)))
	for i := range out {
		out[i] = listOf([]ref.Val{x[i], y[i]})
	}
	return listOf(out)
}

// group makes an object of pairs of key and element.
func group(pairs ref.Val) ref.Val {
	groups := make(map[string][]ref.Val)
	for i, p := range elements(pairs) {
		pair := elements(p)
		key, ok := keyText(pair[0])
		if !ok {
			return types.NewErr("groupBy: the key of element %d is %s, expected a text, a number, a bool or null", i, kind(pair[0]))
		}
		groups[key] = append(groups[key], pair[1])
	}
	out := make(map[ref.Val]ref.Val, len(groups))
	for k, es := range groups {
		out[types.String(k)] = listOf(es)
	}
	return adapter{}.NativeToValue(out)
}

// keyText returns a value as the name of a member.
func keyText(v ref.Val) (string, bool) {
	switch t := v.(type) {
	case types.String:
		return string(t), true
	case types.Null:
		return "null", true
	case types.Bool, types.Int, types.Uint, types.Double:
		s, ok := t.ConvertToType(types.StringType).(types.String)
		return string(s), ok
	}
	return "", false
}

// reduceMacro expands list.reduce(acc, x, start, expr).
func reduceMacro(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if err := checkVariables(f, "reduce", args[:2]); err != nil {
		return nil, err
	}
	acc := args[0].AsIdent()
	return f.NewComprehension(target, args[1].AsIdent(), acc, args[2], f.NewLiteral(types.True), args[3], f.NewIdent(acc)), nil
}

// groupByMacro expands list.groupBy(x, key) to a call with the pairs of key and element.
func groupByMacro(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if err := checkVariables(f, "groupBy", args[:1]); err != nil {
		return nil, err
	}
	pair := f.NewList(f.NewList(args[1], f.NewIdent(args[0].AsIdent())))
	return f.NewCall(fnGroup, f.NewComprehension(target, args[0].AsIdent(), f.AccuIdentName(), f.NewList(),
		f.NewLiteral(types.True), f.NewCall(operators.Add, f.NewAccuIdent(), pair), f.NewAccuIdent())), nil
}

// checkVariables refuses what is not a name, and a name that is used twice.
func checkVariables(f cel.MacroExprFactory, macro string, vars []ast.Expr) *cel.Error {
	for i, v := range vars {
		if v.Kind() != ast.IdentKind {
			return f.NewError(v.ID(), macro+": the variable must be a name")
		}
		if i > 0 && v.AsIdent() == vars[0].AsIdent() {
			return f.NewError(v.ID(), macro+": the variables must have different names")
		}
	}
	return nil
}

func objectLibrary() []cel.EnvOption {
	m := anyMap()
	return []cel.EnvOption{
		method("keys", "map_keys", func(a ...ref.Val) ref.Val { return listOf(sortedKeys(a[0].(traits.Mapper))) }, anyList(), m),
		method("values", "map_values", func(a ...ref.Val) ref.Val { return memberValues(a[0].(traits.Mapper)) }, anyList(), m),
		method("merge", "map_merge_map", func(a ...ref.Val) ref.Val { return mergeMaps(a...) }, m, m, m),
	}
}

func memberValues(m traits.Mapper) ref.Val {
	keys := sortedKeys(m)
	out := make([]ref.Val, len(keys))
	for i, k := range keys {
		out[i] = m.Get(k)
	}
	return listOf(out)
}

func mergeMaps(maps ...ref.Val) ref.Val {
	out := make(map[ref.Val]ref.Val)
	for _, v := range maps {
		m, ok := v.(traits.Mapper)
		if !ok {
			return undefined("merge", maps...)
		}
		for it := m.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			out[k] = m.Get(k)
		}
	}
	return adapter{}.NativeToValue(out)
}
