// Package excerpt cuts texts for messages. It must not know where a text comes from or what it says.
package excerpt

import "unicode/utf8"

// mark replaces the omitted part.
const mark = "…"

// Bytes returns a text of at most n bytes unchanged, and otherwise its first n bytes without a partial character,
// followed by "…".
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// Chars returns a text of at most n characters unchanged, and otherwise its first n characters, followed by "…".
func Chars(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + mark
		}
		n--
	}
	return s
}
