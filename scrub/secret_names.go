package scrub

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// secretNames matches names of secret values. It is compiled on first use.
var secretNames = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // a compiled table
	return regexp.MustCompile(`(?i)passw|passphrase|secret|api_?-?key|(^|[_-])token$|(access|auth|refresh|session)_?-?token|bearer|credential|private_?-?key|^authorization$`)
})

// IsSecretName reports whether a name means that its value is secret.
func IsSecretName(name string) bool { return secretNames().MatchString(name) }

// TextsUnderSecretNames returns the texts under secret names in values, also inside texts
// that are JSON. The longest come first.
func TextsUnderSecretNames(values ...any) []string {
	var found []string
	var visit func(v any, secret bool)
	visit = func(v any, secret bool) {
		switch t := v.(type) {
		case string:
			if inner, ok := parseJSONText(t); ok {
				visit(inner, secret)
				return
			}
			if secret && len(t) >= MinLength && !slices.Contains(found, t) {
				found = append(found, t)
			}
		case []any:
			for _, e := range t {
				visit(e, secret)
			}
		case map[string]any:
			for name, e := range t {
				visit(e, secret || IsSecretName(name))
			}
		}
	}
	for _, v := range values {
		visit(v, false)
	}
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return found
}

// parseJSONText parses a text that is a JSON object or list.
func parseJSONText(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return nil, false
	}
	var v any
	err := json.Unmarshal([]byte(text), &v)
	return v, err == nil
}
