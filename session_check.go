package weir

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine"
)

// maxNameLength is how many bytes the names may have that a session is known by.
const maxNameLength = 200

// checkNames holds what a session is known by to what a line of a listing can
// show.
func (o *SessionOptions) checkNames() error {
	for _, n := range [...]struct{ what, name string }{{"user", o.User}, {"thread", o.Thread}, {"session id", o.ID}} {
		if err := checkName(n.what, n.name); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses a name, of what is said, that a line cannot show; "" is none.
func checkName(what, name string) error {
	bad := ""
	switch {
	case name == "":
		return nil
	case len(name) > maxNameLength:
		bad = fmt.Sprintf("has more than %d bytes", maxNameLength)
	case strings.ContainsFunc(name, isUnprintable):
		bad = "has characters that cannot be shown, such as line breaks"
	case strings.TrimSpace(name) != name:
		bad = "begins or ends with blanks"
	default:
		return nil
	}
	return &Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the %s %q %s", what, shortenName(name), bad),
		Hint:    "give a name that fits on a line: letters, digits, signs and blanks between them",
	}
}

// isUnprintable reports a rune that moves a cursor, changes a line's direction or
// is none.
func isUnprintable(r rune) bool {
	return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// shortenName is the beginning of a name that is too long to be repeated whole.
func shortenName(name string) string {
	if runes := []rune(name); len(runes) > maxNameLength/4 {
		return string(runes[:maxNameLength/4]) + "…"
	}
	return name
}

// errEmptyMessage refuses a message that says nothing.
func errEmptyMessage(session string) error {
	return &Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the message to session %s is empty", session),
		Hint:    "say something; only an answer to a question may be empty",
	}
}

// isEmptyMessage reports whether a message has nothing in it that a model or person could
// read: no text but blanks, and no parts either.
func isEmptyMessage(said engine.Value) bool {
	switch v := said.(type) {
	case nil:
		return true
	case string:
		return isBlank(v)
	case []any:
		return len(v) == 0
	case map[string]any:
		text, isText := v["text"].(string)
		if _, isMessage := v["role"]; !isMessage || v["text"] != nil && !isText {
			return false
		}
		for _, more := range []string{"parts", "calls", "native"} {
			if v[more] != nil {
				return false
			}
		}
		return isBlank(text)
	}
	return false
}

// isBlank reports whether nothing of a text can be seen.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) })
}
