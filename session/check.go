package session

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// checkNames checks the names of a session.
func (o *OpenOptions) checkNames() error {
	for _, n := range [...]struct{ what, name string }{{"user", o.User}, {"thread", o.Thread}, {"session id", o.ID}} {
		if err := runner.CheckName(n.what, n.name); err != nil {
			return err
		}
	}
	return nil
}

// errEmptyMessage returns the error for an empty message.
func errEmptyMessage(session string) error {
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the message to session %s is empty", session),
		Hint:    "send some text; only an answer to a question may be empty",
	}
}

// isEmptyMessage reports whether a message has no content: only blank text, and no parts.
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

// isBlank reports whether a text has no visible character.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) })
}
