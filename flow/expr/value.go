package expr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// adapter converts Go values to CEL values. Lists and maps keep their Go value, so that
// returning one needs no copy.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch t := v.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return t
	case bool:
		return types.Bool(t)
	case string:
		return types.String(t)
	case int64:
		return types.Int(t)
	case int:
		return types.Int(t)
	case int32:
		return types.Int(t)
	case float64:
		return types.Double(t)
	case float32:
		return types.Double(t)
	case []any:
		return list{types.NewDynamicList(a, t), t}
	case map[string]any:
		return dict{types.NewStringInterfaceMap(a, t), t}
	case Object:
		return object{t}
	case json.Number, uint, uint8, uint16, uint32, uint64, int8, int16, []string, []int, []float64,
		map[string]string, []map[string]any, []byte, time.Time, time.Duration, []ref.Val, map[ref.Val]ref.Val:
		return types.DefaultTypeAdapter.NativeToValue(t)
	}
	return opaque{v}
}

// list is a Go list as a CEL list.
type list struct {
	traits.Lister
	raw []any
}

// dict is a Go map as a CEL map.
type dict struct {
	traits.Mapper
	raw map[string]any
}

// object is an Object as a CEL map: members are read one by one, and all of them only if an
// operation needs them.
type object struct{ o Object }

// whole reads all members.
func (m object) whole() dict {
	raw := m.o.All()
	return dict{types.NewStringInterfaceMap(adapter{}, raw), raw}
}

func (m object) ConvertToNative(t reflect.Type) (any, error) { return m.whole().ConvertToNative(t) }
func (m object) ConvertToType(t ref.Type) ref.Val            { return m.whole().ConvertToType(t) }
func (m object) Equal(other ref.Val) ref.Val                 { return m.whole().Equal(other) }
func (m object) Type() ref.Type                              { return types.MapType }
func (m object) Value() any                                  { return m.o.All() }
func (m object) Iterator() traits.Iterator                   { return m.whole().Iterator() }
func (m object) Size() ref.Val                               { return types.Int(m.o.Len()) }

// Contains implements traits.Container.
func (m object) Contains(key ref.Val) ref.Val {
	v, ok := m.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(ok)
}

// Get implements traits.Indexer.
func (m object) Get(key ref.Val) ref.Val {
	v, ok := m.Find(key)
	if v == nil || (!ok && !types.IsUnknownOrError(v)) {
		return types.NewErr("no such key: %v", key.Value())
	}
	return v
}

// Find implements traits.Mapper.
func (m object) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	v, ok := m.o.Get(string(k))
	if !ok {
		return nil, false
	}
	return adapter{}.NativeToValue(v), true
}

// opaque is a Go value that expressions may pass on and compare, but not inspect.
type opaque struct{ v any }

func opaqueType() *types.Type { return types.NewOpaqueType("weir.Value") }

// ConvertToNative implements ref.Val.
func (o opaque) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(o.v).AssignableTo(t) {
		return o.v, nil
	}
	return nil, fmt.Errorf("a %T cannot be converted to %v", o.v, t)
}

// ConvertToType implements ref.Val.
func (o opaque) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("a %T cannot be converted", o.v)
}

// Equal implements ref.Val.
func (o opaque) Equal(other ref.Val) ref.Val {
	p, ok := other.(opaque)
	return types.Bool(ok && reflect.TypeOf(o.v).Comparable() && reflect.TypeOf(p.v).Comparable() && o.v == p.v)
}

func (o opaque) Type() ref.Type { return opaqueType() }
func (o opaque) Value() any     { return o.v }

// plain normalises a Go value from Vars without CEL.
func plain(v any) any {
	switch t := v.(type) {
	case nil, bool, string, int64, float64, []any, map[string]any:
		return v
	case int:
		return int64(t)
	case int32:
		return int64(t)
	case float32:
		return float64(t)
	case Object:
		return t.All()
	case ref.Val:
		return v
	}
	switch adapter := (adapter{}).NativeToValue(v).(type) {
	case opaque:
		return v
	default:
		n := nativeConverter{left: MaxResult / 2}
		out, err := n.of(adapter)
		if err != nil {
			return v
		}
		return out
	}
}

// nativeConverter converts CEL values to Go values, at most left elements and bytes.
type nativeConverter struct{ left int }

var errNoValue = errors.New("the optional value has no value; give one with .orValue(DEFAULT)")

var errTooBig = fmt.Errorf("the result has more than %d elements or bytes", MaxResult/2)

// of returns the Go value: nil bool int64 float64 string []any map[string]any, or the value
// of an opaque.
func (n *nativeConverter) of(v ref.Val) (any, error) {
	if n.left--; n.left < 0 {
		return nil, errTooBig
	}
	switch t := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(t), nil
	case types.Int:
		return int64(t), nil
	case types.String:
		return string(t), nil
	case types.Double:
		if math.IsNaN(float64(t)) || math.IsInf(float64(t), 0) {
			return nil, fmt.Errorf("the result %v is not a number that can be stored", float64(t))
		}
		return float64(t), nil
	case types.Uint:
		if uint64(t) > math.MaxInt64 {
			return nil, fmt.Errorf("the result %d does not fit a signed 64-bit integer", uint64(t))
		}
		return int64(t), nil
	case list:
		return t.raw, nil
	case dict:
		return t.raw, nil
	case object:
		return t.o.All(), nil
	case opaque:
		return t.v, nil
	}
	return n.ofOther(v)
}

func (n *nativeConverter) ofOther(v ref.Val) (any, error) {
	switch t := v.(type) {
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(t), nil
	case *types.Optional:
		if !t.HasValue() {
			return nil, errNoValue
		}
		return n.of(t.GetValue())
	case types.Timestamp:
		return t.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return t.String(), nil
	case ref.Type:
		return t.TypeName(), nil
	case traits.Lister:
		return n.ofList(t)
	case traits.Mapper:
		return n.ofMap(t)
	}
	return nil, fmt.Errorf("the result is a %s, which is not a value", v.Type().TypeName())
}

func (n *nativeConverter) ofList(l traits.Lister) (any, error) {
	size, ok := l.Size().(types.Int)
	if !ok || int64(size) > int64(n.left) {
		return nil, errTooBig
	}
	out := make([]any, 0, int(size))
	for it := l.Iterator(); it.HasNext() == types.True; {
		e, err := n.of(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (n *nativeConverter) ofMap(m traits.Mapper) (any, error) {
	out := make(map[string]any)
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		name, ok := k.(types.String)
		if !ok {
			return nil, errors.New("the result is a map with a key that is not text")
		}
		e, err := n.of(m.Get(k))
		if err != nil {
			return nil, err
		}
		out[string(name)] = e
	}
	return out, nil
}
