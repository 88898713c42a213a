package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/internal/jsonkey"
)

// Value is a value of a port, state key or effect: nil, bool, int64, float64, string,
// []any, map[string]any, or a type that marshals to a JSON object with one "$"-key
// (Handle). Values are immutable once shared; to change one, copy it first (see Copy).
type Value = any

// Handle refers to a conversation context. Contexts are always passed by handle. Its JSON
// is {"$context": id}.
type Handle struct {
	ID string `json:"$context"`
}

// Values is an ordered list of named values, encoded as a JSON object.
type Values []Named

// Named is one named value.
type Named struct {
	Name  string
	Value Value
}

// Get returns the value under name and whether it exists.
func (v Values) Get(name string) (Value, bool) {
	for i := range v {
		if v[i].Name == name {
			return v[i].Value, true
		}
	}
	return nil, false
}

// Map returns the values as a new map.
func (v Values) Map() map[string]any {
	m := make(map[string]any, len(v))
	for _, n := range v {
		m[n.Name] = n.Value
	}
	return m
}

// MarshalJSON writes an object with the keys in order, as AppendValue does.
func (v Values) MarshalJSON() ([]byte, error) { return AppendValue(nil, v) }

// UnmarshalJSON reads an object and keeps the order of its keys.
func (v *Values) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t == nil {
		*v = nil
		return nil
	}
	if t != json.Delim('{') {
		return fmt.Errorf("values: expected an object, got %v", t)
	}
	*v = Values{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		x, err := DecodeValue(raw)
		if err != nil {
			return err
		}
		*v = append(*v, Named{k.(string), x})
	}
	_, err = d.Token()
	return err
}

// DecodeValue reads the output of EncodeValue: whole numbers that fit are int64, other
// numbers float64, {"$context": id} is a Handle. Use ParseValue for JSON from outside.
func DecodeValue(data []byte) (Value, error) {
	v, err := parse(data, normalizer{depth: maxStored, bytesLeft: math.MaxInt})
	if err != nil {
		return nil, err
	}
	return unescapeMarkers(v), nil
}

// ParseValue reads JSON from outside: nothing in it becomes a Handle. Data after the value
// is an error, and so are a key that occurs twice in one object, and a whole number of which
// neither int64 nor float64 keeps all digits.
func ParseValue(data []byte) (Value, error) {
	v, err := parse(data, normalizer{depth: MaxDepth, bytesLeft: MaxSize})
	if err != nil {
		return nil, err
	}
	if err := jsonkey.Check(data); err != nil {
		return nil, err
	}
	return v, nil
}

func parse(data []byte, n normalizer) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	if rest := data[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return n.value(x)
}

// unescapeMarkers reverts the marking of EncodeValue: {"$context": id} becomes a Handle,
// {"$": {...}} the object inside. It changes v in place.
func unescapeMarkers(v Value) Value {
	switch t := v.(type) {
	case []any:
		for i := range t {
			t[i] = unescapeMarkers(t[i])
		}
	case map[string]any:
		if id, ok := t["$context"].(string); ok && len(t) == 1 {
			return Handle{ID: id}
		}
		inner, escaped := t["$"].(map[string]any)
		if escaped && len(t) == 1 {
			t = inner
		}
		// order: each key is changed alone.
		for k, e := range t {
			t[k] = unescapeMarkers(e)
		}
		return t
	}
	return v
}

// The limits of values from outside.
const (
	// MaxDepth is the maximum nesting of lists and objects.
	MaxDepth = 1000
	// MaxSize is the maximum size of a value: the bytes of its strings and keys, plus 16
	// for each element and member.
	MaxSize = 128 << 20
	// maxStored is the maximum nesting of values read from journals.
	maxStored = 10000
)

// Normalize converts decoded JSON and plain Go data to a Value and copies every list and
// object: integers of any width become int64, json.Number int64 or float64, structs their
// JSON. It refuses values that JSON cannot represent, that have a key twice, are nested deeper
// than MaxDepth, contain themselves, or are larger than MaxSize, errors of which JSON has no
// field, and whole numbers of which neither int64 nor float64 keeps all digits.
func Normalize(x any) (Value, error) {
	n := normalizer{depth: MaxDepth, bytesLeft: MaxSize}
	return n.value(x)
}

// normalizer is one walk over a value, with the depth and size that remain.
type normalizer struct{ depth, bytesLeft int }

func (n *normalizer) value(x any) (Value, error) {
	switch t := x.(type) {
	case nil, bool, int64:
		return t, nil
	case string:
		if n.bytesLeft -= len(t); n.bytesLeft < 0 {
			return nil, errTooLarge()
		}
		if utf8.ValidString(t) {
			return x, nil // x avoids boxing t again
		}
		return validText(t), nil
	case Handle:
		return Handle{ID: validText(t.ID)}, nil
	case float64:
		return checkFloat(t)
	case float32:
		return checkFloat(float64(t))
	case int:
		return int64(t), nil
	case int32:
		return int64(t), nil
	case json.Number:
		return number(t)
	case []any:
		return n.list(t)
	case map[string]any:
		return n.object(t)
	case Values:
		return n.object(t.Map())
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be stored: %w", x, err)
	}
	if _, ok := x.(error); ok && string(b) == "{}" {
		return nil, fmt.Errorf("an error of type %T cannot be stored, since JSON has none of its fields: store its text", x)
	}
	err = jsonkey.Check(b) // the type may write its JSON itself
	var v Value
	if err == nil {
		v, err = parse(b, *n)
	}
	if err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be stored: %w", x, err)
	}
	n.bytesLeft -= len(b)
	return unescapeMarkers(v), nil
}

// enter descends one level, into that many members.
func (n *normalizer) enter(members int) error {
	if n.depth--; n.depth < 0 {
		return fmt.Errorf("the value is nested deeper than %d levels, or contains itself", MaxDepth)
	}
	if n.bytesLeft -= 16 * members; n.bytesLeft < 0 {
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error { return fmt.Errorf("the value is larger than %d MB", MaxSize>>20) }

func checkFloat(f float64) (Value, error) {
	if f != f || f > maxFloat || f < -maxFloat {
		return nil, fmt.Errorf("%v is not a number that can be stored", f)
	}
	return f, nil
}

const maxFloat = 1.7976931348623157e308

func number(n json.Number) (Value, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range", n)
	}
	if s := n.String(); !strings.ContainsAny(s, ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != s {
		return nil, fmt.Errorf("the whole number %s does not fit 64 bits and would lose digits; pass it as text", shortNumber(s))
	}
	return f, nil
}

// shortNumber returns a number as it is or, if it is long, its beginning.
func shortNumber(s string) string {
	if len(s) > 40 {
		return s[:37] + "..."
	}
	return s
}

func (n *normalizer) list(l []any) (Value, error) {
	if err := n.enter(len(l)); err != nil {
		return nil, err
	}
	out := make([]any, len(l))
	for i, e := range l {
		v, err := n.value(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	n.depth++
	return out, nil
}

func (n *normalizer) object(m map[string]any) (Value, error) {
	if err := n.enter(len(m)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(m))
	// order: the result is a map; of several invalid members the error names any one
	for k, e := range m {
		v, err := n.value(e)
		if err != nil {
			return nil, err
		}
		if n.bytesLeft -= len(k); n.bytesLeft < 0 {
			return nil, errTooLarge()
		}
		out[validText(k)] = v
	}
	n.depth++
	return out, nil
}

// validText returns s with each byte that is not UTF-8 replaced by U+FFFD, as the journal
// stores it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Copy returns a value that shares no list or object with v.
func Copy(v Value) Value {
	switch t := v.(type) {
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = Copy(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t { // order: the result is a map
			out[k] = Copy(e)
		}
		return out
	}
	return v
}
