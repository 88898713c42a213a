package expr

import (
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// boundedRegex replaces the regular expression functions by versions that check the size of
// text, pattern and result first.
func boundedRegex(lib *cel.Env) ([]cel.EnvOption, error) {
	s := cel.StringType
	var out []cel.EnvOption
	for _, f := range []struct {
		function, overload string
		result             *cel.Type
		args               []*cel.Type
	}{
		{"regex.extract", "regex_extract_string_string", cel.OptionalType(s), []*cel.Type{s, s}},
		{"regex.extractAll", "regex_extractAll_string_string", cel.ListType(s), []*cel.Type{s, s}},
		{"regex.replace", "regex_replace_string_string_string", s, []*cel.Type{s, s, s}},
		{"regex.replace", "regex_replace_string_string_string_int", s, []*cel.Type{s, s, s, cel.IntType}},
	} {
		do, err := binding(lib, f.function, f.overload)
		if err != nil {
			return nil, err
		}
		out = append(out, cel.Function(f.function, cel.Overload(f.overload, f.args, f.result, cel.FunctionBinding(func(a ...ref.Val) ref.Val {
			text, pattern := string(a[0].(types.String)), string(a[1].(types.String))
			if err := boundPattern(f.function, text, pattern); err != nil {
				return types.WrapErr(err)
			}
			if len(a) > 2 {
				if err := boundReplacement(text, pattern, string(a[2].(types.String))); err != nil {
					return err
				}
			}
			return do(a...)
		}))))
	}
	return out, nil
}

// boundReplacement returns an error if replacing all matches builds too long a text, nil
// if not.
func boundReplacement(text, pattern, with string) ref.Val {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return types.WrapErr(err)
	}
	total := len(text)
	groups := 0 // references to groups, each at most as long as its match
	for i := range len(with) {
		if with[i] == '\\' {
			groups++
		}
	}
	for _, m := range re.FindAllStringIndex(text, MaxResult/max(len(with), 1)+1) {
		total += len(with) + groups*(m[1]-m[0])
		if total > MaxResult {
			return types.NewErr("regex.replace: the result is longer than %d bytes", MaxResult)
		}
	}
	return nil
}

// maxSetPairs is how many pairs of elements a function over two lists may compare.
const maxSetPairs = 1_000_000

// boundedSets replaces the functions that compare each element of a list with each of
// another.
func boundedSets(lib *cel.Env) ([]cel.EnvOption, error) {
	l := cel.ListType(cel.TypeParamType("T"))
	args := []*cel.Type{l, l}
	var out []cel.EnvOption
	for _, f := range []struct{ function, overload string }{
		{"sets.contains", "list_sets_contains_list"},
		{"sets.equivalent", "list_sets_equivalent_list"},
		{"sets.intersects", "list_sets_intersects_list"},
	} {
		do, err := binding(lib, f.function, f.overload)
		if err != nil {
			return nil, err
		}
		bounded := cel.FunctionBinding(func(a ...ref.Val) ref.Val {
			n, _ := a[0].(traits.Lister).Size().(types.Int)
			m, _ := a[1].(traits.Lister).Size().(types.Int)
			x, y := weigh(a[0], maxComparedElements), weigh(a[1], maxComparedElements)
			if max(x*int(m), y*int(n)) > maxSetPairs {
				return types.NewErr("%s: the lists are too large: at most %d pairs of elements are compared", f.function, maxSetPairs)
			}
			return do(a...)
		})
		out = append(out, cel.Function(f.function, cel.Overload(f.overload, args, cel.BoolType, bounded)))
	}
	return out, nil
}
