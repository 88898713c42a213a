package expr

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/internal/jsonkey"
)

// parsers redefines json.parse and yaml.parse to return the value: the library's return an
// optional, which this language does not have.
func parsers(lib *cel.Env) ([]cel.EnvOption, error) {
	text := []*cel.Type{cel.StringType}
	typed := []*cel.Type{cel.StringType, types.NewTypeTypeWithParam(cel.TypeParamType("T"))}
	var out []cel.EnvOption
	for _, f := range []struct {
		function, overload string
		args               []*cel.Type
		result             *cel.Type
	}{
		{"json.parse", "json_parse_string", text, cel.DynType},
		{"json.parse", "json_parse_string_type", typed, cel.TypeParamType("T")},
		{"yaml.parse", "yaml_parse_string", text, cel.DynType},
		{"yaml.parse", "yaml_parse_string_type", typed, cel.TypeParamType("T")},
	} {
		parse, err := binding(lib, f.function, f.overload)
		if err != nil {
			return nil, err
		}
		if f.function == "json.parse" {
			parse = jsonParse
		}
		out = append(out, cel.Function(f.function, cel.Overload(f.overload, f.args, cel.OptionalType(f.result),
			cel.FunctionBinding(func(a ...ref.Val) ref.Val { return unwrapOptional(f.function, parse(a...)) }))))
	}
	return out, nil
}

// unwrapOptional returns the value of an optional.
func unwrapOptional(function string, v ref.Val) ref.Val {
	o, ok := v.(*types.Optional)
	switch {
	case !ok:
		return v
	case !o.HasValue():
		return types.NewErr("%s: the text cannot be parsed", function)
	}
	return o.GetValue()
}

// jsonParse implements json.parse with specific errors.
func jsonParse(a ...ref.Val) ref.Val {
	text, ok := a[0].(types.String)
	if !ok {
		return undefined("json.parse", a...)
	}
	out, err := parseJSON(string(text))
	if err != nil {
		return types.NewErr("json.parse: %v", err)
	}
	v := adapter{}.NativeToValue(out)
	if len(a) == 1 {
		return v
	}
	if t, ok := a[1].(ref.Type); !ok || t.TypeName() != v.Type().TypeName() {
		return types.NewErr("json.parse: the text has %s, expected %v", kind(v), a[1].Value())
	}
	return v
}

// parseJSON reads exactly one JSON value. Integers stay integers.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the text is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the text has more than one JSON value; the second starts at byte %d", d.InputOffset())
	}
	if err := jsonkey.Check([]byte(text)); err != nil {
		return nil, err
	}
	return numbers(v)
}

// numbers replaces the numbers of a decoded value, in place.
func numbers(v any) (_ any, err error) {
	switch t := v.(type) {
	case json.Number:
		return parseNumber(string(t))
	case []any:
		for i := range t {
			if t[i], err = numbers(t[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range t {
			if t[k], err = numbers(t[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// parseNumber returns an int64 if the number is written as an integer, otherwise a float64.
func parseNumber(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the integer %s does not fit 64 bits", excerpt.Bytes(s, 120))
		}
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %s is out of range", excerpt.Bytes(s, 120))
	}
	return f, nil
}
