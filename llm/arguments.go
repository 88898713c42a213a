package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// maxDepth is the maximum nesting of arguments that are sent unchanged. Vendors' parsers
// have limits, that of protobuf is 100.
const maxDepth = 64

// argumentsKey holds arguments that are not an object.
const argumentsKey = "arguments"

// NormalizeArguments returns the arguments of a call in a form that every API accepts: a
// JSON object that all parsers read the same. A valid object is sent byte for byte. One
// with duplicate keys is sent as tools here read it, with the last value, and half a
// surrogate pair as U+FFFD. Text that is not an object, is nested deeper than 64 or has a
// number out of the range of float64 is sent under the key "arguments". Empty arguments are
// {}.
func NormalizeArguments(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return json.RawMessage("{}")
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		twice, err := hasDuplicateKey([]byte(text))
		switch {
		case err != nil:
		case twice || !UnambiguousJSON([]byte(text)):
			return reencodeObject(text)
		case text != arguments:
			return json.RawMessage(text)
		default:
			return json.RawMessage(arguments)
		}
	}
	return wrapText(arguments)
}

// wrapText returns an object with the text.
func wrapText(text string) json.RawMessage {
	data, err := json.Marshal(map[string]string{argumentsKey: text})
	if err != nil { // encoding a string cannot fail
		return json.RawMessage("{}")
	}
	return data
}

// reencodeObject decodes and encodes an object.
func reencodeObject(text string) json.RawMessage {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return wrapText(text)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(fields); err != nil {
		return wrapText(text)
	}
	return bytes.TrimSpace(out.Bytes())
}

// errAmbiguousJSON means that not every parser accepts an object.
var errAmbiguousJSON = errors.New("too deep, or a number too large")

// hasDuplicateKey reports whether an object in a valid JSON text has a duplicate key. It
// fails if some parsers would reject the text.
func hasDuplicateKey(text []byte) (twice bool, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []*jsonLevel
	for {
		t, end := d.Token()
		if end != nil {
			return twice, nil //nolint:nilerr // the text is valid: this is its end
		}
		if v, is := t.(json.Number); is {
			if _, err := strconv.ParseFloat(v.String(), 64); err != nil {
				return twice, errAmbiguousJSON
			}
		}
		var in *jsonLevel
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			in.value()
			open = append(open, &jsonLevel{object: t == json.Delim('{')})
			if len(open) > maxDepth {
				return twice, errAmbiguousJSON
			}
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			twice = in.token(t) || twice
		}
	}
}

// jsonLevel is an open object or list.
type jsonLevel struct {
	object       bool
	expectsValue bool // a value is next
	seen         map[string]bool
}

// value consumes a value.
func (l *jsonLevel) value() {
	if l != nil {
		l.expectsValue = false
	}
}

// token consumes a key or a scalar, and reports whether it is a duplicate key.
func (l *jsonLevel) token(t json.Token) (twice bool) {
	if !l.object || l.expectsValue {
		l.value()
		return false
	}
	key, _ := t.(string)
	twice = l.seen[key]
	if l.seen == nil {
		l.seen = make(map[string]bool)
	}
	l.seen[key], l.expectsValue = true, true
	return twice
}
