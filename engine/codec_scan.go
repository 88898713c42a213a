package engine

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Elements iterates over the raw elements of a JSON array. The data must be valid JSON;
// JSON of another kind has no elements.
func Elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(data, 0)
		if i >= len(data) || data[i] != '[' {
			return
		}
		for i = skipSpace(data, i+1); i < len(data) && data[i] != ']'; {
			end := skipValue(data, i)
			if !yield(data[i:end]) {
				return
			}
			i = skipSpace(data, end)
			if i < len(data) && data[i] == ',' {
				i = skipSpace(data, i+1)
			}
		}
	}
}

// Members iterates over the members of a JSON object: the unescaped key and the raw value.
// The data must be valid JSON; JSON of another kind has no members.
func Members(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, raw []byte) bool) {
		i := skipSpace(data, 0)
		if i >= len(data) || data[i] != '{' {
			return
		}
		for i = skipSpace(data, i+1); i < len(data) && data[i] != '}'; {
			end := skipValue(data, i)
			key := unescape(data[i:end])
			i = skipSpace(data, skipSpace(data, end)+1) // the colon
			end = skipValue(data, i)
			if !yield(key, data[i:end]) {
				return
			}
			i = skipSpace(data, end)
			if i < len(data) && data[i] == ',' {
				i = skipSpace(data, i+1)
			}
		}
	}
}

// Unquote returns the text of a raw JSON string; ok is false for other JSON.
func Unquote(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(unescape(raw)), true
}

// unescape returns the content of a raw JSON string, without a copy if nothing is escaped.
func unescape(raw []byte) []byte {
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return in
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return in
	}
	return []byte(s)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) && !isDelimiter(b[i]) {
		i++
	}
	return i
}

func isDelimiter(c byte) bool {
	switch c {
	case ',', ']', '}', ':', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return i
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}
