package expr

import (
	"fmt"
	"regexp/syntax"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
)

// CEL computes the cost of a call from its static overload, which an expression over
// dynamic values does not have, and only after the call. So this file computes the costs:
// before a call that could be unbounded, and after others, by the size of arguments and
// result.

// maxComparedElements is the maximum number of elements in a deep comparison. Shared parts
// count each time, because the comparison visits them each time.
const maxComparedElements = 1_000_000

// callCosts computes the cost of calls from their arguments and results. It implements
// cost.ActualCostEstimator.
type callCosts struct{}

// CallCost returns one unit, plus one for every 64 bytes and 8 elements.
func (callCosts) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	switch function {
	case operators.Equals, operators.NotEquals, operators.In:
		for _, a := range args {
			cost += uint64(weigh(a, maxComparedElements)) / 8
		}
	case operators.Add:
		if _, building := args[0].(traits.MutableLister); building {
			break // a macro extends its list in place
		}
		cost += size(args...) + size(result)
	case "size", fnOrdered, fnAt, fnOptAt, operators.OptSelect:
	case "toJson", "unique", fnGroup, "json.encode", "yaml.encode":
		for _, a := range args {
			cost += uint64(weigh(a, maxComparedElements)) / 2
		}
		cost += size(result)
	default:
		cost += size(args...) + size(result)
	}
	return &cost
}

func size(vs ...ref.Val) (cost uint64) {
	for _, v := range vs {
		switch t := v.(type) {
		case types.String:
			cost += uint64(len(t)) / 64
		case types.Bytes:
			cost += uint64(len(t)) / 64
		case traits.Lister:
			if n, ok := t.Size().(types.Int); ok {
				cost += uint64(n) / 8
			}
		case traits.Mapper:
			if n, ok := t.Size().(types.Int); ok {
				cost += uint64(n) / 8
			}
		}
	}
	return cost
}

// weigh counts the elements that a deep comparison visits, up to left.
func weigh(v ref.Val, left int) int {
	switch t := v.(type) {
	case list:
		return weighGo(t.raw, left)
	case dict:
		return weighGo(t.raw, left)
	case object:
		return min(left, t.o.Len())
	case types.String:
		return min(left, len(t)/512)
	case traits.Lister:
		sum := 0
		for it := t.Iterator(); sum < left && it.HasNext() == types.True; {
			sum += 1 + weigh(it.Next(), left-sum)
		}
		return sum
	case traits.Mapper:
		sum := 0
		for it := t.Iterator(); sum < left && it.HasNext() == types.True; {
			sum += 1 + weigh(t.Get(it.Next()), left-sum)
		}
		return sum
	}
	return 0
}

func weighGo(v any, left int) int {
	sum := 0
	switch t := v.(type) {
	case string:
		return min(left, len(t)/512)
	case []any:
		for _, e := range t {
			if sum >= left {
				break
			}
			sum += 1 + weighGo(e, left-sum)
		}
	case map[string]any:
		for _, e := range t {
			if sum >= left {
				break
			}
			sum += 1 + weighGo(e, left-sum)
		}
	}
	return sum
}

// boundComparisons replaces comparisons, and matches, by versions that check the size of
// their operands first.
func boundComparisons(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	var compare func(a, b ref.Val) ref.Val
	switch call.Function() {
	case operators.Equals:
		compare = types.Equal
	case operators.NotEquals:
		compare = func(a, b ref.Val) ref.Val {
			if eq, ok := types.Equal(a, b).(types.Bool); ok {
				return !eq
			}
			return types.False
		}
	case operators.In:
		compare = func(a, b ref.Val) ref.Val {
			if c, ok := b.(traits.Container); ok {
				return c.Contains(a)
			}
			return undefined(call.Function(), a, b)
		}
	case "matches":
		compare = matches
	default:
		return nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		args[0], args[1] = optionalOperand(args[0], args[1]), optionalOperand(args[1], args[0])
		if weigh(args[0], maxComparedElements) >= maxComparedElements || weigh(args[1], maxComparedElements) >= maxComparedElements {
			return types.NewErr("the values are too large to compare: more than %d elements", maxComparedElements)
		}
		return compare(args[0], args[1])
	})
}

// optionalOperand returns the value of an optional that is compared with a plain value.
func optionalOperand(v, other ref.Val) ref.Val {
	o, ok := v.(*types.Optional)
	if _, both := other.(*types.Optional); !ok || both || !o.HasValue() {
		return v
	}
	return o.GetValue()
}

// matches returns the library's function, but the size of the pattern is charged for every byte.
func matches(text, pattern ref.Val) ref.Val {
	s, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	p, ok := pattern.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pattern)
	}
	if err := boundPattern("matches", string(s), string(p)); err != nil {
		return types.WrapErr(err)
	}
	return s.Match(p)
}

// boundPattern refuses a regular expression that takes too many steps for a text.
func boundPattern(function, text, pattern string) error {
	const most = 1 << 27 // steps of the regular expression
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return err
	}
	if len(prog.Inst)*len(text) > most {
		return fmt.Errorf("%s: the text has %d bytes, too many for a pattern of %d steps", function, len(text), len(prog.Inst))
	}
	return nil
}

// boundedDistinct replaces distinct, which compares every pair.
func boundedDistinct(lib *cel.Env) (cel.EnvOption, error) {
	distinct, err := binding(lib, "distinct", "list_distinct")
	if err != nil {
		return nil, err
	}
	const most = 3000
	l := cel.ListType(cel.TypeParamType("T"))
	return cel.Function("distinct", cel.MemberOverload("list_distinct", []*cel.Type{l}, l, cel.UnaryBinding(func(v ref.Val) ref.Val {
		if n, ok := v.(traits.Lister).Size().(types.Int); ok && n > most || weigh(v, maxComparedElements) >= maxComparedElements/most {
			return types.NewErr("distinct: the list is too large: at most %d pairs of elements are compared", most)
		}
		return distinct(v)
	}))), nil
}

// boundedFormat replaces format, which can repeat texts of any length.
func boundedFormat(lib *cel.Env) (cel.EnvOption, error) {
	format, err := binding(lib, "format", "string_format")
	if err != nil {
		return nil, err
	}
	args := []*cel.Type{cel.StringType, cel.ListType(cel.DynType)}
	return cel.Function("format", cel.MemberOverload("string_format", args, cel.StringType, cel.FunctionBinding(func(a ...ref.Val) ref.Val {
		total := 0
		for it := a[1].(traits.Lister).Iterator(); it.HasNext() == types.True; {
			e := it.Next()
			if s, ok := e.(types.String); ok {
				total += len(s)
			} else {
				total += 1024 * weigh(e, MaxResult/1024)
			}
			if total > MaxResult {
				return types.NewErr("format: the result is longer than %d bytes", MaxResult)
			}
		}
		return format(a...)
	}))), nil
}

// binding returns the implementation of a function in an environment.
func binding(env *cel.Env, function, overload string) (func(...ref.Val) ref.Val, error) {
	all, err := env.Functions()[function].Bindings()
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		switch {
		case o.Operator != overload:
		case o.Unary != nil:
			return func(a ...ref.Val) ref.Val { return o.Unary(a[0]) }, nil
		case o.Binary != nil:
			return func(a ...ref.Val) ref.Val { return o.Binary(a[0], a[1]) }, nil
		case o.Function != nil:
			return o.Function, nil
		}
	}
	return nil, errNoBinding
}

// libraries returns the extension libraries, with limits for their unbounded functions.
func libraries() ([]cel.EnvOption, error) {
	libs := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(ext.ListsVersion(3), ext.ListsMaxRangeSize(100_000)), ext.Math(), ext.Encoders(),
		ext.Sets(), ext.Regex(), ext.TwoVarComprehensions(), ext.Bindings(),
	}
	donor, err := cel.NewEnv(libs...)
	if err != nil {
		return nil, err
	}
	format, err := boundedFormat(donor)
	if err != nil {
		return nil, err
	}
	distinct, err := boundedDistinct(donor)
	if err != nil {
		return nil, err
	}
	parse, err := parsers(donor)
	if err != nil {
		return nil, err
	}
	regex, err := boundedRegex(donor)
	if err != nil {
		return nil, err
	}
	sets, err := boundedSets(donor)
	if err != nil {
		return nil, err
	}
	libs = append(libs, boundedReplace(), boundedJoin(), format, distinct)
	return slices.Concat(libs, parse, regex, sets, ownFunctions()), nil
}
