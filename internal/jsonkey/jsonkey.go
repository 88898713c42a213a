// Package jsonkey finds keys that occur twice in one object of a JSON text. Parsers disagree about which of the two
// values counts. It must not know where a text comes from.
package jsonkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// DuplicateError says that an object has a key twice, so that its meaning depends on the parser.
type DuplicateError struct{ Key string }

// Error names the key.
func (e *DuplicateError) Error() string { return fmt.Sprintf("the key %q occurs twice", e.Key) }

// Check returns a *DuplicateError for the first key that occurs twice in one object of a text, or nil. Keys are compared
// as they are decoded: "a" and "\u0061" are equal. The text must be valid JSON; of other texts, it may find nothing.
func Check(text []byte) error {
	var open []level
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open = append(open, level{object: true, key: true})
		case '[':
			open = append(open, level{})
		case '}', ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case ',':
			if len(open) > 0 {
				open[len(open)-1].key = open[len(open)-1].object
			}
		case '"':
			quoted := text[i:stringEnd(text, i)]
			i += len(quoted) - 1
			if len(open) > 0 && !open[len(open)-1].add(quoted) {
				return &DuplicateError{Key: decode(quoted)}
			}
		}
	}
	return nil
}

// stringEnd returns the index after the string that begins at a quote.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// decode returns the text of a quoted key.
func decode(quoted []byte) string {
	inside := bytes.Trim(quoted, `"`)
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(inside)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return string(inside)
	}
	return s
}

// level is an open object or list.
type level struct {
	object bool
	key    bool // the next string is a key
	few    []string
	many   map[string]bool // in place of few
}

// maxFew is the number of keys that are compared one by one.
const maxFew = 16

// add reads a string and returns false if it is a duplicate key.
func (l *level) add(quoted []byte) bool {
	if !l.key {
		return true
	}
	l.key = false
	k := decode(quoted)
	if l.many != nil {
		if l.many[k] {
			return false
		}
		l.many[k] = true
		return true
	}
	if slices.Contains(l.few, k) {
		return false
	}
	l.few = append(l.few, k)
	if len(l.few) > maxFew {
		l.many = make(map[string]bool, 2*maxFew)
		for _, f := range l.few {
			l.many[f] = true
		}
		l.few = nil
	}
	return true
}
