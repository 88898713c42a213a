package flow

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a value in a file.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindList
	kindObject
)

// String returns the name of the kind for messages.
func (k kind) String() string {
	return [...]string{"null", "a bool", "a number", "a number", "a text", "a list", "an object"}[k]
}

// value is one value of a file with its position, the same for YAML and JSON.
type value struct {
	kind      kind
	quoted    bool // a quoted text, or a block
	line, col int32
	// text is the content of a text, or the source of another scalar.
	text    string
	scalar  any // of a bool, int64 or float64
	items   []*value
	members []member
}

// member is one key of an object.
type member struct {
	key       string
	line, col int32
	val       *value
}

// get returns the value of a key, nil if there is none.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].val
		}
	}
	return nil
}

// any converts the value to plain Go data: nil bool int64 float64 string []any
// map[string]any.
func (v *value) any() any {
	switch v.kind {
	case kindNull:
		return nil
	case kindText:
		return v.text
	case kindList:
		out := make([]any, len(v.items))
		for i, e := range v.items {
			out[i] = e.any()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			out[m.key] = m.val.any()
		}
		return out
	default:
		return v.scalar
	}
}

// asText returns the content of a text, and the source of any other scalar except null:
// where text is expected, `true` and `1` are text.
func (v *value) asText() (string, bool) {
	switch v.kind {
	case kindNull, kindList, kindObject:
		return "", false
	default:
		return v.text, true
	}
}

// source is the content of a file, for finding positions inside a text.
type source struct {
	data  []byte
	lines []int // offset of each line's start, created on first use
}

// textPosition returns the position of byte off of a text value. If the text is written
// with escapes or folded, it returns the position of the {{ before off, or of the value.
func (s *source) textPosition(v *value, off int) (line, col int) {
	line, col = int(v.line), int(v.col)
	const farthest = 100_000 // limits the cost of the walk
	if s == nil || line <= 0 || off < 0 || off > len(v.text) || col > farthest {
		return line, col
	}
	start := s.offset(line, col)
	if start < 0 {
		return line, col
	}
	rest := string(s.data[start:min(len(s.data), start+4*len(v.text)+4096)])
	open := strings.LastIndex(v.text[:off], "{{")
	if open < 0 {
		if body := strings.Index(rest, v.text); body >= 0 && body <= 1 && !strings.Contains(v.text, "\n") {
			return s.lineColumn(start + body + off)
		}
		return line, col
	}
	nth := strings.Count(v.text[:open], "{{")
	at := 0
	for range nth + 1 {
		i := strings.Index(rest[at:], "{{")
		if i < 0 {
			return line, col
		}
		at += i + 2
	}
	if strings.HasPrefix(rest[at:], v.text[open+2:off]) {
		return s.lineColumn(start + at + off - open - 2)
	}
	return s.lineColumn(start + at - 2)
}

// offset returns the byte offset of a line and column, counted from 1 in characters.
func (s *source) offset(line, col int) int {
	if s.lines == nil {
		s.lines = append(s.lines, 0)
		for i, c := range s.data {
			if c == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	if line > len(s.lines) {
		return -1
	}
	at := s.lines[line-1]
	for range col - 1 {
		if at >= len(s.data) {
			return -1
		}
		_, n := utf8.DecodeRune(s.data[at:])
		at += n
	}
	return at
}

// lineColumn returns the line and column of a byte offset.
func (s *source) lineColumn(off int) (line, col int) {
	lo, hi := 0, len(s.lines)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; s.lines[mid] <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, utf8.RuneCount(s.data[s.lines[lo]:off]) + 1
}

// parseNumber reads a JSON number: whole numbers are int64, others float64.
func parseNumber(s string) (any, kind, bool) {
	if !strings.ContainsAny(s, ".eE") {
		i, err := strconv.ParseInt(s, 10, 64)
		return i, kindInt, err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, kindFloat, err == nil
}
