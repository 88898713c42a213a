package llmtest

import (
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// maxNested is the depth at which protobuf's parser stops by default ("Limits").
const maxNested = 100

// plain describes the part of a valid JSON text that some parsers reject or read differently: invalid UTF-8, a
// duplicate key, half of a surrogate pair, a number outside float64, too deep nesting. "" means none.
func plain(text []byte) string {
	if !utf8.Valid(text) {
		return "it is not UTF-8"
	}
	s := &scanner{rest: string(text)}
	s.value(0)
	return s.problem
}

// scanner reads a valid JSON text.
type scanner struct {
	rest    string
	problem string
}

func (s *scanner) broken(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf(format, args...)
	}
}

// next skips white space and separators, and returns the next byte.
func (s *scanner) next() byte {
	for s.rest != "" {
		switch s.rest[0] {
		case ' ', '\t', '\r', '\n', ',', ':':
			s.rest = s.rest[1:]
			continue
		}
		return s.rest[0]
	}
	return 0
}

func (s *scanner) value(depth int) {
	if depth > maxNested {
		s.broken("it is nested deeper than %d", maxNested)
		s.rest = ""
	}
	switch s.next() {
	case 0:
	case '{':
		s.object(depth)
	case '[':
		s.rest = s.rest[1:]
		for c := s.next(); c != ']' && c != 0; c = s.next() {
			s.value(depth + 1)
		}
		s.skip()
	case '"':
		s.text()
	default:
		s.literal()
	}
}

func (s *scanner) object(depth int) {
	s.rest = s.rest[1:]
	keys := map[string]bool{}
	for c := s.next(); c != '}' && c != 0; c = s.next() {
		key := s.text()
		if keys[key] {
			s.broken("an object has the key %q twice", key)
		}
		keys[key] = true
		s.value(depth + 1)
	}
	s.skip()
}

func (s *scanner) skip() {
	if s.rest != "" {
		s.rest = s.rest[1:]
	}
}

// unit parses a code unit of UTF-16 in an escape.
var unit = regexp.MustCompile(`^\\\\u([0-9a-fA-F]{4})`)

// text reads a string and returns it with its escapes.
func (s *scanner) text() string {
	at := 1
	said := make([]rune, 0, 16)
	var high rune
	for at < len(s.rest) && s.rest[at] != '"' {
		var r rune
		size := 2
		switch m := unit.FindStringSubmatch(s.rest[at:min(len(s.rest), at+6)]); {
		case m != nil:
			n, _ := strconv.ParseUint(m[1], 16, 16) // the pattern has four digits
			r, size = rune(n), 6
		case s.rest[at] == '\\':
			r = rune(s.rest[at+1])
		default:
			r, size = utf8.DecodeRuneInString(s.rest[at:])
		}
		low := size == 6 && r >= 0xdc00 && r <= 0xdfff
		if low != (high != 0) {
			s.broken("a string has half of a surrogate pair")
		}
		high = 0
		if size == 6 && r >= 0xd800 && r < 0xdc00 {
			high = r
		}
		said = append(said, r)
		at += size
	}
	if high != 0 {
		s.broken("a string has half of a surrogate pair")
	}
	s.rest = s.rest[min(at+1, len(s.rest)):]
	return string(said)
}

func (s *scanner) literal() {
	at := 0
	for at < len(s.rest) && s.rest[at] != ',' && s.rest[at] != '}' && s.rest[at] != ']' && s.rest[at] > ' ' {
		at++
	}
	word := s.rest[:at]
	if s.rest = s.rest[at:]; word == "true" || word == "false" || word == "null" {
		return
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil {
		s.broken("%s is no number of 64 bits", word)
	}
}
