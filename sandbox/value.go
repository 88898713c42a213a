package sandbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
)

// MaxDepth is the maximum nesting of lists and objects in a value.
const MaxDepth = 200

// NormalizeValue converts v to the form in which the state stores it, sharing nothing with
// v, or returns the part that JSON or the state cannot represent; the caller must set its
// Key. v consists of nil, bool, int64, float64, json.Number, string, []any and
// map[string]any.
func NormalizeValue(v any) (any, *UnencodableValue) {
	var path []string
	out, why := normalizeAt(v, &path, 0)
	if why == "" {
		return out, nil
	}
	slices.Reverse(path)
	return nil, &UnencodableValue{Path: strings.Join(path, ""), Why: why}
}

// normalizeAt builds the path from the inside outwards, after an error.
func normalizeAt(v any, path *[]string, depth int) (any, string) {
	if depth > MaxDepth {
		return nil, "is nested deeper than " + strconv.Itoa(MaxDepth) + " lists and objects"
	}
	switch t := v.(type) {
	case nil, bool, int64:
		return t, ""
	case int:
		return int64(t), ""
	case float64:
		if t != t || t-t != 0 {
			return nil, "is " + nonFiniteText(t)
		}
		return t, ""
	case json.Number:
		return normalizeNumber(t)
	case string:
		if why := notJSON(t); why != "" {
			return nil, why
		}
		if !utf8.ValidString(t) {
			return nil, "is a text that is not Unicode"
		}
		return strings.Clone(t), ""
	case []any:
		return normalizeList(t, path, depth)
	case map[string]any:
		return normalizeObject(t, path, depth)
	default:
		return nil, "is " + engine.KindOf(v)
	}
}

func normalizeList(list []any, path *[]string, depth int) (any, string) {
	out := make([]any, len(list))
	for i, e := range list {
		x, why := normalizeAt(e, path, depth+1)
		if why != "" {
			*path = append(*path, "["+strconv.Itoa(i)+"]")
			return nil, why
		}
		out[i] = x
	}
	return out, ""
}

func normalizeObject(object map[string]any, path *[]string, depth int) (any, string) {
	out := make(map[string]any, len(object))
	for _, k := range slices.Sorted(maps.Keys(object)) {
		x, why := normalizeAt(object[k], path, depth+1)
		if why != "" {
			*path = append(*path, "["+strconv.Quote(k)+"]")
			return nil, why
		}
		out[k] = x
	}
	return out, ""
}

// normalizeNumber converts a number. A whole number that does not fit 64 bits would lose
// digits, so it is refused.
func normalizeNumber(n json.Number) (any, string) {
	if i, err := n.Int64(); err == nil {
		return i, ""
	}
	if !strings.ContainsAny(n.String(), ".eE") {
		return nil, "is a whole number that does not fit 64 bits"
	}
	f, err := n.Float64()
	if err != nil {
		return nil, "is a number that is out of range"
	}
	return f, ""
}

func nonFiniteText(f float64) string {
	switch {
	case f != f:
		return "NaN"
	case f > 0:
		return "Infinity"
	default:
		return "-Infinity"
	}
}
