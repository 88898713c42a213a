package app

import (
	"fmt"
	"strings"
)

// UsageError is a mistake of the caller: an option, an input or a configuration that
// cannot be used as it is.
type UsageError struct{ Err error }

// Error is the cause's.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Printable removes control characters other than newline and tab, and characters that
// change the direction of text. Texts of models, tools and servers may contain them; in a
// terminal or a page they could hide or fake what is shown.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0: // C0, DEL, C1
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional controls
			return -1
		}
		return r
	}, s)
}
