package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendValue appends the JSON of v to b, for people and other programs. Whole float64s
// keep their decimal point ("1.0"), so that a number keeps its type in a round trip; object
// keys are sorted; HTML is not escaped; a Handle is {"$context": id}.
func AppendValue(b []byte, v Value) ([]byte, error) { return appender{}.value(b, v) }

// EncodeValue is AppendValue for a store: an object with one key that begins with "$" is
// wrapped as {"$": {...}}, so that DecodeValue does not read it as a Handle.
func EncodeValue(b []byte, v Value) ([]byte, error) { return appender{escapeMarkers: true}.value(b, v) }

// appender writes values as JSON.
type appender struct {
	escapeMarkers bool
	depth         int // nesting depth of lists and objects
}

// enter returns the appender for the elements of a list or object.
func (a appender) enter() (appender, error) {
	if a.depth++; a.depth > maxStored {
		return a, fmt.Errorf("the value is nested deeper than %d levels, or contains itself", maxStored)
	}
	return a, nil
}

func (a appender) value(b []byte, v Value) ([]byte, error) {
	switch t := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, t), nil
	case int64:
		return strconv.AppendInt(b, t, 10), nil
	case int:
		return strconv.AppendInt(b, int64(t), 10), nil
	case float64:
		return appendFloat(b, t)
	case string:
		return AppendString(b, t), nil
	case Handle:
		b = append(b, `{"$context":`...)
		return append(AppendString(b, t.ID), '}'), nil
	case []any:
		return a.list(b, t)
	case map[string]any:
		return a.object(b, t)
	case Values:
		return a.values(b, t)
	}
	j, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be stored: %w", v, err)
	}
	return append(b, j...), nil
}

func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a number that can be stored", f)
	}
	n := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !strings.ContainsAny(string(b[n:]), ".e") {
		b = append(b, '.', '0')
	}
	return b, nil
}

func (a appender) list(b []byte, l []any) ([]byte, error) {
	a, err := a.enter()
	if err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i, e := range l {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = a.value(b, e); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (a appender) object(b []byte, m map[string]any) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m { // order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	marked := a.escapeMarkers && len(keys) == 1 && strings.HasPrefix(keys[0], "$")
	if marked { // a user's "$context" key is not a Handle
		b = append(b, `{"$":`...)
	}
	a, err := a.enter()
	if err != nil {
		return nil, err
	}
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, k), ':')
		if b, err = a.value(b, m[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	if marked {
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

func (a appender) values(b []byte, v Values) ([]byte, error) {
	a, err := a.enter()
	if err != nil {
		return nil, err
	}
	b = append(b, '{')
	for i, n := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, n.Name), ':')
		if b, err = a.value(b, n.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return append(b, '}'), nil
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as in encoding/json.
func AppendString(b []byte, s string) []byte {
	if len(s) >= growFrom { // or the closing quote would have the buffer grow once more
		b = slices.Grow(b, len(s)+2)
	}
	b = append(b, '"')
	start, next := 0, 0 // next is from where on it is worth to skip again
	for i := 0; i < len(s); {
		if i >= next {
			if i = skipPlain(s, i); i == len(s) {
				break
			}
			next = i + 8
		}
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(append(b, s[start:i]...), '\\')
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(append(b, s[start:i]...), "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += n
	}
	return append(append(b, s[start:]...), '"')
}

// growFrom is the length from which AppendString makes room for a whole text at once.
const growFrom = 1 << 10

// skipPlain returns an index from i on up to which no byte needs an escape and all are
// ASCII. It reads eight bytes at a time and may stop before the first byte that does.
func skipPlain(s string, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^('"'*ones), w^('\\'*ones)
		// The highest bit of each byte that is 0x80 or more, less than a space, a quote or a
		// backslash is set; a borrow may also set that of a byte after one of those.
		if (w|(w-' '*ones)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&high != 0 {
			return i
		}
	}
	return i
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, c)
	case '\n':
		return append(b, 'n')
	case '\r':
		return append(b, 'r')
	case '\t':
		return append(b, 't')
	}
	return append(b, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
