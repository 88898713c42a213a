package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clean makes text from outside safe to keep and to show: what is not UTF-8
// becomes U+FFFD, and control characters but tab and line ends, which could
// drive a terminal, become the pictures of themselves (U+2400 and on; those of
// the C1 range U+FFFD). Nothing else is changed or read.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return r
		case r < ' ':
			return 0x2400 + r
		case r == 0x7F:
			return 0x2421
		case r >= 0x80 && r < 0xA0:
			return utf8.RuneError
		}
		return r
	}, s)
}

// Cut keeps at most limit bytes of s, two thirds from its beginning and the
// rest from its end, whole characters only, and says between them how much was
// left out. The line that says so is not counted. A negative limit keeps all.
func Cut(s string, limit int) string {
	if limit < 0 || len(s) <= limit {
		return s
	}
	end := limit - limit/3
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	begin := len(s) - limit/3
	for begin < len(s) && !utf8.RuneStart(s[begin]) {
		begin++
	}
	return fmt.Sprintf("%s\n[%d of %d bytes are left out here]\n%s", s[:end], begin-end, len(s), s[begin:])
}
