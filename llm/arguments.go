package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/weir-run/weir/internal/jsonkey"
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
		switch {
		case checkBounds([]byte(text)) != nil:
		case jsonkey.Check([]byte(text)) != nil || !UnambiguousJSON([]byte(text)):
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

// checkBounds returns an error for a valid JSON text that some parsers would reject.
func checkBounds(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for depth := 0; ; {
		t, end := d.Token()
		if end != nil {
			return nil //nolint:nilerr // the text is valid: this is its end
		}
		switch v := t.(type) {
		case json.Number:
			if _, err := strconv.ParseFloat(v.String(), 64); err != nil {
				return errAmbiguousJSON
			}
		case json.Delim:
			if v == '}' || v == ']' {
				depth--
			} else if depth++; depth > maxDepth {
				return errAmbiguousJSON
			}
		}
	}
}
