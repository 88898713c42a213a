package expr

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Names of functions that macros and rewriting insert. They cannot be written in an
// expression.
const (
	fnGroup   = "@group"
	fnOrdered = "@ordered"
	fnAt      = "@at"
	fnOptAt   = "@optAt"
	fnUUID    = "@uuid"
	fnOr      = "@or"
	fnOrValue = "@orValue"
)

// UUIDSeed is the root name under which Vars returns the text that uuid(n) derives its
// values from. It cannot be written in an expression.
const UUIDSeed = "@seed"

// implementation is the implementation of a function.
type implementation = func(...ref.Val) ref.Val

// ownFunctions returns the functions and macros that this package adds to CEL's.
func ownFunctions() []cel.EnvOption {
	return slices.Concat(listLibrary(), objectLibrary(), textLibrary(), numberLibrary(), timeLibrary(),
		encodingLibrary(), internalLibrary())
}

// method declares an overload of a method; the first type is the receiver's.
func method(name, overload string, impl implementation, result *cel.Type, args ...*cel.Type) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload("weir_"+overload, args, result, cel.FunctionBinding(impl)))
}

// global declares an overload of a function.
func global(name, overload string, impl implementation, result *cel.Type, args ...*cel.Type) cel.EnvOption {
	return cel.Function(name, cel.Overload("weir_"+overload, args, result, cel.FunctionBinding(impl)))
}

func anyList() *cel.Type { return cel.ListType(cel.DynType) }

func anyMap() *cel.Type { return cel.MapType(cel.DynType, cel.DynType) }

// internalLibrary has what macros and rewriting call.
func internalLibrary() []cel.EnvOption {
	return []cel.EnvOption{
		global(fnOrdered, "ordered", func(a ...ref.Val) ref.Val { return ordered(a[0]) }, cel.DynType, cel.DynType),
		global(fnAt, "at", func(a ...ref.Val) ref.Val { return at(a[0], a[1]) }, cel.DynType, cel.DynType, cel.DynType),
		global(fnOptAt, "opt_at", func(a ...ref.Val) ref.Val { return optionalAt(a[0], a[1]) }, cel.DynType, cel.DynType, cel.DynType),
		global(fnUUID, "uuid", func(a ...ref.Val) ref.Val { return uuidFrom(a[0], a[1]) }, cel.StringType, cel.DynType, cel.DynType),
		cel.Macros(cel.GlobalMacro("uuid", 1, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return f.NewCall(fnUUID, f.NewIdent(UUIDSeed), args[0]), nil
		})),
		cel.Macros(cel.GlobalMacro("has", 1, hasMacro)),
	}
}

// hasMacro replaces has of the library, which does not accept members with quoted names.
func hasMacro(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	switch e := args[0]; e.Kind() {
	case ast.SelectKind:
		return f.NewPresenceTest(e.AsSelect().Operand(), e.AsSelect().FieldName()), nil
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Index {
			if name, ok := constantKey(c.Args()[1]); ok {
				return f.NewPresenceTest(c.Args()[0], name), nil
			}
		}
	default:
	}
	return nil, f.NewError(args[0].ID(), `has takes a member, such as a.b or a["b c"]`)
}

// orderedMap is a map whose keys are read in order, so that an evaluation repeats itself.
type orderedMap struct {
	traits.Mapper
	keys []ref.Val
}

// Iterator lists the keys in order.
func (m orderedMap) Iterator() traits.Iterator {
	return types.NewRefValList(adapter{}, m.keys).Iterator()
}

// ordered gives a map an order of its keys; other values are returned unchanged.
func ordered(v ref.Val) ref.Val {
	if o, ok := v.(*types.Optional); ok && o.HasValue() {
		v = o.GetValue()
	}
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	return orderedMap{m, sortedKeys(m)}
}

// sortedKeys returns the keys of a map: bools, then numbers, then texts.
func sortedKeys(m traits.Mapper) []ref.Val {
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	rank := func(v ref.Val) int {
		switch {
		case v.Type() == types.BoolType:
			return 0
		case number(v):
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if c, ok := compareValues(a, b); ok {
			return c
		}
		return 0
	})
	return keys
}

// compareValues orders two values of the same kind; false if they have no order.
func compareValues(a, b ref.Val) (int, bool) {
	c, ok := a.(traits.Comparer)
	if !ok {
		return 0, false
	}
	n, ok := c.Compare(b).(types.Int)
	return int(n), ok
}

// at is list[i] and map[key]. A negative position counts from the end of the list.
func at(v, key ref.Val) ref.Val {
	o, optional := v.(*types.Optional)
	if optional {
		return optionalOver(o, key, at)
	}
	if l, ok := v.(traits.Lister); ok {
		i, negative := fromEnd(l, key)
		if negative && i < 0 {
			return types.NewErr("the position %v is before the start of the list, which has %v elements", key.Value(), l.Size().Value())
		}
		if negative {
			return l.Get(i)
		}
	}
	x, ok := v.(traits.Indexer)
	if !ok {
		return undefined("[]", v, key)
	}
	return x.Get(key)
}

// fromEnd converts a negative position to one from the start.
func fromEnd(l traits.Lister, key ref.Val) (types.Int, bool) {
	i, ok := key.(types.Int)
	n, sized := l.Size().(types.Int)
	if !ok || !sized || i >= 0 {
		return 0, false
	}
	return n + i, true
}

// optionalAt is list[?i] and map[?key]: no value if there is no such element.
func optionalAt(v, key ref.Val) ref.Val {
	if o, ok := v.(*types.Optional); ok {
		return optionalOver(o, key, optionalAt)
	}
	switch t := v.(type) {
	case traits.Lister:
		i, negative := fromEnd(t, key)
		if !negative {
			k, ok := key.(types.Int)
			if !ok {
				return undefined("[?]", v, key)
			}
			i = k
		}
		if n, ok := t.Size().(types.Int); !ok || i < 0 || i >= n {
			return types.OptionalNone
		}
		return types.OptionalOf(t.Get(i))
	case traits.Mapper:
		if e, ok := t.Find(key); ok {
			return types.OptionalOf(e)
		}
		return types.OptionalNone
	}
	return undefined("[?]", v, key)
}

// optionalOver applies an index to the value of an optional.
func optionalOver(o *types.Optional, key ref.Val, index func(v, key ref.Val) ref.Val) ref.Val {
	if !o.HasValue() {
		return o
	}
	out := index(o.GetValue(), key)
	if _, is := out.(*types.Optional); is || types.IsUnknownOrError(out) {
		return out
	}
	return types.OptionalOf(out)
}

// elements returns the elements of a list.
func elements(v ref.Val) []ref.Val {
	l, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	var out []ref.Val
	for it := l.Iterator(); it.HasNext() == types.True; {
		out = append(out, it.Next())
	}
	return out
}

// listOf makes a list.
func listOf(vs []ref.Val) ref.Val { return types.NewRefValList(adapter{}, vs) }
