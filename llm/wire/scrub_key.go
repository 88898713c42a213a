package wire

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

const (
	// pieceSize is how many bytes of a key are too many to tell.
	pieceSize = 8
	// minKey is how long a key is at least: what is shorter, as servers at home
	// are given, is a word that texts hold anyway.
	minKey = 4
	// maxLayers is how often a text may be escaped, one in the other.
	maxLayers = 4
	// redacted stands for what was taken out.
	redacted = "[key]"
)

// Scrubber returns a function that takes a key out of a text: every piece of 8
// bytes or more, so that a text cut anywhere tells no more than 7, as it is and
// as escaped for a URL or JSON, or in base64, alone or inside of more. A key of
// less than 8 bytes is taken out as a whole and as it is or escaped; one of less
// than 4 is not looked for. The time is linear in the text's length.
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

// encodedForms are the key and, where it is long enough for that, what base64 makes of
// it at each place that it can have in more: without the letters at both ends
// that hold bits of what is beside it.
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

// decodedByte is a byte that a text says, and where the text says it.
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

// markPieces marks the places of all pieces in what letters say.
func markPieces(letters []decodedByte, pieces map[string]bool, size int, bad []bool) bool {
	said := make([]byte, len(letters))
	for i, l := range letters {
		said[i] = l.value
	}
	found := false
	done := 0 // letters before it are marked
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

// unescaped is what letters say once the escapes of URLs, JSON and Go's quoted
// texts in them are read, nil where there are none.
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

// escape reads an escape at the front of letters: what it says, and how many
// letters it has, 0 if there is none.
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

// hexNumber reads a number of so many digits.
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

// redact is text with hidden in the place of what is bad.
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
