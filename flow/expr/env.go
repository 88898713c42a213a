package expr

import (
	"errors"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// environment is the CEL environment, built on first use because that takes milliseconds,
// and immutable.
var environment = sync.OnceValues(newEnvironment) //nolint:gochecknoglobals // an immutable table

func newEnvironment() (*cel.Env, error) {
	libs, err := libraries()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append([]cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableHiddenAccumulatorName(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(MaxNesting),
		cel.ParserErrorRecoveryLimit(4),
		cel.ExpressionNodeLimit(MaxNodes),
	}, libs...)...)
}

// errNoBinding means that the CEL library changed and this package must be adapted.
var errNoBinding = errors.New("the CEL library has no such function")

// boundedReplace replaces replace, because the library's builds a text of any length before
// its cost is checked.
func boundedReplace() cel.EnvOption {
	s := cel.StringType
	return cel.Function("replace",
		cel.MemberOverload("string_replace_string_string", []*cel.Type{s, s, s}, s,
			cel.FunctionBinding(func(a ...ref.Val) ref.Val { return replace(a, -1) })),
		cel.MemberOverload("string_replace_string_string_int", []*cel.Type{s, s, s, cel.IntType}, s,
			cel.FunctionBinding(func(a ...ref.Val) ref.Val {
				n, ok := a[3].(types.Int)
				if !ok {
					return types.MaybeNoSuchOverloadErr(a[3])
				}
				return replace(a[:3], int(n))
			})))
}

func replace(args []ref.Val, n int) ref.Val {
	var t [3]string
	for i, a := range args {
		s, ok := a.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(a)
		}
		t[i] = string(s)
	}
	count := strings.Count(t[0], t[1])
	if n >= 0 && n < count {
		count = n
	}
	if len(t[0])+count*max(len(t[2])-len(t[1]), 0) > MaxResult {
		return types.NewErr("replace: the result is longer than %d bytes", MaxResult)
	}
	return types.String(strings.Replace(t[0], t[1], t[2], n))
}

// boundedJoin replaces join for the same reason as boundedReplace.
func boundedJoin() cel.EnvOption {
	list := cel.ListType(cel.StringType)
	return cel.Function("join",
		cel.MemberOverload("list_join", []*cel.Type{list}, cel.StringType,
			cel.UnaryBinding(func(l ref.Val) ref.Val { return join(l, types.String("")) })),
		cel.MemberOverload("list_join_string", []*cel.Type{list, cel.StringType}, cel.StringType,
			cel.BinaryBinding(join)))
}

func join(list, sep ref.Val) ref.Val {
	l, ok := list.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(list)
	}
	by, ok := sep.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(sep)
	}
	var b strings.Builder
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			b.WriteString(string(by))
		}
		s, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: the list has an element that is not a string")
		}
		b.WriteString(string(s))
		if b.Len() > MaxResult || i > MaxResult {
			return types.NewErr("join: the result is longer than %d bytes", MaxResult)
		}
	}
	return types.String(b.String())
}
