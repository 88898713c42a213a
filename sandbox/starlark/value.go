package starlark

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lang "go.starlark.net/starlark"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// toStarlark converts an engine.Value to a Starlark value.
func toStarlark(v engine.Value) (lang.Value, error) {
	switch t := v.(type) {
	case nil:
		return lang.None, nil
	case bool:
		return lang.Bool(t), nil
	case int64:
		return lang.MakeInt64(t), nil
	case float64:
		return lang.Float(t), nil
	case string:
		return lang.String(t), nil
	case []any:
		list := make([]lang.Value, len(t))
		for i, e := range t {
			x, err := toStarlark(e)
			if err != nil {
				return nil, err
			}
			list[i] = x
		}
		return lang.NewList(list), nil
	case map[string]any:
		return toDict(t)
	}
	return nil, fmt.Errorf("a value of type %T cannot be given to code", v)
}

// toDict creates a dict with its keys in alphabetical order.
func toDict(m map[string]any) (*lang.Dict, error) {
	d := lang.NewDict(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		x, err := toStarlark(m[k])
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(lang.String(k), x); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fileValues returns the files' contents by name.
func fileValues(files map[string][]byte) *lang.Dict {
	d := lang.NewDict(len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var v lang.Value = lang.Bytes(files[name])
		if utf8.Valid(files[name]) {
			v = lang.String(files[name])
		}
		_ = d.SetKey(lang.String(name), v) // a string is always a valid key
	}
	return d
}

// errTooDeep: a list or dict contains itself, or is nested too deeply.
var errTooDeep = errors.New("is nested deeper than " + strconv.Itoa(sandbox.MaxDepth) + " lists and objects")

// fromStarlark converts to an engine.Value, tuples to lists. The error gives the position within v and the invalid
// value, such as "['a'][3] is a function".
func fromStarlark(v lang.Value, depth int) (engine.Value, error) {
	if depth > sandbox.MaxDepth {
		return nil, errTooDeep
	}
	switch t := v.(type) {
	case lang.NoneType:
		return nil, nil
	case lang.Bool:
		return bool(t), nil
	case lang.Int:
		return fromInt(t)
	case lang.Float:
		if f := float64(t); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, fmt.Errorf("is %s", notFinite(float64(t)))
	case lang.String:
		return string(t), nil
	case *lang.Dict:
		return fromDict(t, depth)
	case *lang.List, lang.Tuple:
		return fromSequence(v.(lang.Indexable), depth)
	}
	return nil, errors.New("is " + withArticle(v.Type()))
}

func fromInt(i lang.Int) (engine.Value, error) {
	if n, ok := i.Int64(); ok {
		return n, nil
	}
	return nil, errors.New("is a whole number that does not fit 64 bits")
}

func fromDict(d *lang.Dict, depth int) (engine.Value, error) {
	m := make(map[string]any, d.Len())
	for _, item := range d.Items() {
		k, ok := lang.AsString(item[0])
		if !ok {
			return nil, errors.New("has a key that is " + withArticle(item[0].Type()) + " and not a text")
		}
		x, err := fromStarlark(item[1], depth+1)
		if err != nil {
			return nil, atStep("["+strconv.Quote(k)+"]", err)
		}
		m[k] = x
	}
	return m, nil
}

func fromSequence(s lang.Indexable, depth int) (engine.Value, error) {
	list := make([]any, s.Len())
	for i := range list {
		x, err := fromStarlark(s.Index(i), depth+1)
		if err != nil {
			return nil, atStep("["+strconv.Itoa(i)+"]", err)
		}
		list[i] = x
	}
	return list, nil
}

// valueError is an error with its position within a value.
type valueError struct {
	path string
	err  error
}

// Error returns the position and the problem.
func (p *valueError) Error() string { return p.path + " " + p.err.Error() }

func atStep(step string, err error) error {
	if inner, ok := errors.AsType[*valueError](err); ok {
		return &valueError{step + inner.path, inner.err}
	}
	if errors.Is(err, errTooDeep) {
		return err // the path adds nothing
	}
	return &valueError{step, err}
}

// unencodableValue converts an error of fromStarlark.
func unencodableValue(key string, err error) sandbox.UnencodableValue {
	if p, ok := errors.AsType[*valueError](err); ok {
		return sandbox.UnencodableValue{Key: key, Path: p.path, Why: p.err.Error()}
	}
	return sandbox.UnencodableValue{Key: key, Why: err.Error()}
}

func notFinite(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case f > 0:
		return "Infinity"
	default:
		return "-Infinity"
	}
}

// withArticle returns the name of a type with its article.
func withArticle(name string) string {
	if strings.ContainsAny(name[:1], "aeiouN") { // NoneType is None
		if name == "NoneType" {
			return "None"
		}
		return "an " + name
	}
	return "a " + name
}
