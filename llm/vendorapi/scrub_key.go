package vendorapi

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

const (
	// pieceSize is the length of the shortest piece of a key that is removed.
	pieceSize = 8
	// minKey is the length of the shortest key that is removed. Shorter ones, as local servers have them, are
	// ordinary words.
	minKey = 4
	// maxLayers is the maximum number of nested escapings that are decoded.
	maxLayers = 4
	// redacted replaces removed text.
	redacted = "[key]"
)

// Scrubber returns a function that removes a key from a text. It removes every piece of 8 bytes or more, so that a
// text that was cut anywhere reveals at most 7: unescaped, escaped for a URL or JSON, or in base64, alone or as part
// of a longer text. A key of less than 8 bytes is removed only as a whole and unescaped or escaped; one of less than
// 4 is ignored. The time is linear in the text's length.
func Scrubber(key string) func(string) string {
	if len(key) < minKey {
		return func(text string) string { return text }
	}
	size := min(len(key), pieceSize)
	pieces := map[string]bool{}
	for _, form := range encodedForms(key) {
		for i := range len(form) - size + 1 {
			pieces[form[i:i+size]] = true
		}
	}
	return func(text string) string {
		bad := make([]bool, len(text))
		found := false
		for layer, letters := 0, plain(text); letters != nil && layer < maxLayers; layer++ {
			found = markPieces(letters, pieces, size, bad) || found
			letters = unescaped(letters)
		}
		if !found {
			return text
		}
		return redact(text, bad)
	}
}

// encodedForms returns the key and, if it is long enough, its base64 forms at each alignment within a longer text,
// without the characters at both ends that contain neighbouring bits.
func encodedForms(key string) []string {
	all := []string{key}
	if len(key) < pieceSize {
		return all
	}
	for before := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString(append(make([]byte, before), key...))
			all = append(all, text[(before*8+5)/6:(before+len(key))*8/6])
		}
	}
	return all
}

// decodedByte is a decoded byte of a text, with its position there.
type decodedByte struct {
	value    byte
	from, to int
}

func plain(text string) []decodedByte {
	letters := make([]decodedByte, len(text))
	for i := range letters {
		letters[i] = decodedByte{text[i], i, i + 1}
	}
	return letters
}

// markPieces marks the positions of all pieces in the decoded bytes.
func markPieces(letters []decodedByte, pieces map[string]bool, size int, bad []bool) bool {
	said := make([]byte, len(letters))
	for i, l := range letters {
		said[i] = l.value
	}
	found := false
	done := 0 // the bytes before it are marked already
	for i := range len(said) - size + 1 {
		if !pieces[string(said[i:i+size])] {
			continue
		}
		found = true
		for _, l := range letters[max(i, done) : i+size] {
			for at := l.from; at < l.to; at++ {
				bad[at] = true
			}
		}
		done = i + size
	}
	return found
}

// unescaped decodes the escapes of URLs, JSON and Go's quoted texts; nil if there are none.
func unescaped(letters []decodedByte) []decodedByte {
	out := make([]decodedByte, 0, len(letters))
	some := false
	for i := 0; i < len(letters); {
		said, n := escape(letters[i:])
		if n == 0 {
			out = append(out, letters[i])
			i++
			continue
		}
		some = true
		for k := range len(said) {
			out = append(out, decodedByte{said[k], letters[i].from, letters[i+n-1].to})
		}
		i += n
	}
	if !some {
		return nil
	}
	return out
}

// escape decodes an escape at the start: its bytes, and its length, 0 if there is none.
func escape(letters []decodedByte) (string, int) {
	switch {
	case len(letters) < 2:
	case letters[0].value == '%':
		if n, ok := hexNumber(letters[1:], 2); ok {
			return string([]byte{byte(n)}), 3
		}
	case letters[0].value != '\\':
	case letters[1].value == 'u':
		if n, ok := hexNumber(letters[2:], 4); ok {
			return string(utf8.AppendRune(nil, rune(n))), 6
		}
	case letters[1].value == 'x':
		if n, ok := hexNumber(letters[2:], 2); ok {
			return string([]byte{byte(n)}), 4
		}
	default:
		return string([]byte{letters[1].value}), 2
	}
	return "", 0
}

// hexNumber parses a number of that many digits.
func hexNumber(letters []decodedByte, digits int) (uint64, bool) {
	if len(letters) < digits {
		return 0, false
	}
	var text [4]byte
	for i := range digits {
		text[i] = letters[i].value
	}
	n, err := strconv.ParseUint(string(text[:digits]), 16, 32)
	return n, err == nil
}

// redact returns text with the bad ranges replaced.
func redact(text string, bad []bool) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		switch {
		case !bad[i]:
			out = append(out, text[i])
		case i == 0 || !bad[i-1]:
			out = append(out, redacted...)
		}
	}
	return string(out)
}
