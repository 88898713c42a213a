package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// maxDepth is how deep the arguments of a call may be nested to be sent as they
// are. Parsers of vendors stop at some depth, that of protobuf at 100.
const maxDepth = 64

// argumentsKey holds arguments that are no object.
const argumentsKey = "arguments"

// NormalizeArguments is the arguments of a call as every API takes them: a JSON object of
// which all parsers read the same. An object is sent byte for byte; one that has a
// key twice, as tools here read it, by the last of them, and half of a surrogate
// pair as U+FFFD. Text that is no object, or one that is nested deeper than 64 or
// has a number that no float64 holds, is sent whole under the key "arguments". No
// arguments are {}.
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

// wrapText is a text as an object.
func wrapText(text string) json.RawMessage {
	data, err := json.Marshal(map[string]string{argumentsKey: text})
	if err != nil { // no string fails
		return json.RawMessage("{}")
	}
	return data
}

// reencodeObject is an object, read and written anew.
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

// errAmbiguousJSON is an object that not every parser takes.
var errAmbiguousJSON = errors.New("too deep, or a number too large")

// hasDuplicateKey reports whether an object in a valid JSON text has a key twice. It fails
// where not every parser would take the text.
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

// jsonLevel is an object or a list that is open.
type jsonLevel struct {
	object       bool
	expectsValue bool // a value is next
	seen         map[string]bool
}

// value takes a value.
func (l *jsonLevel) value() {
	if l != nil {
		l.expectsValue = false
	}
}

// token takes a key or a value that is none of an object or a list, and reports
// whether it is a key that was there.
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
