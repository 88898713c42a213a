package scrub

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// secretNames matches names of secret values. It is compiled on first use.
var secretNames = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // a compiled table
	return regexp.MustCompile(`(?i:passw|passphrase|passcode|secret|bearer|credential|connection_?-?string|(api|private|access|signing|encryption|ssh|master|storage|account)_?-?key|` +
		`(^|[_-])token$|(access|auth|refresh|session|id|csrf)_?-?token|(^|[_-])(pwd|jwt|otp|pin|cookie|cookies)$|^(proxy-)?authorization$|^auth$)|[a-z](Token|Pwd|Jwt|Otp|Pin|Cookie)$`)
})

// secretFragments matches what stands in a text as a name with its value: `"name": "value"`, name=value, or
// `Name: Bearer value`. The groups are the name, and the value in double quotes, in single quotes or without quotes.
var secretFragments = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // a compiled table
	return regexp.MustCompile(`([A-Za-z0-9_.-]+)\\?["']?[ \t]*[:=][ \t]*(?:(?:Bearer|Basic|Token)[ \t]+)?(?:\\?"((?:[^"\\]|\\[^"])*)|'([^']*)|([^\s,;&"'<>(){}\[\]\\?=:]+=*))`)
})

// IsSecretName reports whether a name means that its value is secret.
func IsSecretName(name string) bool { return secretNames().MatchString(name) }

// TextsUnderSecretNames returns the texts and numbers under secret names in values: members of objects, values of pairs
// such as {name: "password", value: "..."} and ["Authorization", "..."], the same inside texts that are JSON, and
// `name: value` or `name=value` in the first 256 KiB of other texts. The longest come first.
func TextsUnderSecretNames(values ...any) []string {
	f := finder{}
	for _, v := range values {
		f.visit(v, false)
	}
	slices.SortFunc(f.found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return f.found
}

// maxFragments bounds the part of a text that is searched for names with values, in bytes: the search is much slower than
// parsing JSON.
const maxFragments = 256 << 10

// finder collects the texts under secret names.
type finder struct{ found []string }

func (f *finder) visit(v any, secret bool) {
	switch t := v.(type) {
	case string:
		f.visitText(t, secret)
	case json.Number:
		f.addNumber(t.String(), secret)
	case int64:
		f.addNumber(strconv.FormatInt(t, 10), secret)
	case int:
		f.addNumber(strconv.Itoa(t), secret)
	case float64:
		f.addNumber(strconv.FormatFloat(t, 'f', -1, 64), secret)
	case []any:
		pair := len(t) == 2 && isSecretText(t[0])
		for i, e := range t {
			f.visit(e, secret || pair && i == 1)
		}
	case map[string]any:
		pair := isSecretText(t["name"]) || isSecretText(t["key"])
		for name, e := range t {
			f.visit(e, secret || IsSecretName(name) || pair && name == "value")
		}
	default:
		f.visitNamed(reflect.ValueOf(v), secret)
	}
}

// visitNamed visits values of named types, such as map[string]string.
func (f *finder) visitNamed(v reflect.Value, secret bool) {
	switch v.Kind() { //nolint:exhaustive // others have no texts
	case reflect.String:
		f.visitText(v.String(), secret)
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.Index(i).Interface()
		}
		f.visit(list, secret)
	case reflect.Map:
		object := make(map[string]any, v.Len())
		for _, k := range v.MapKeys() {
			object[k.String()] = v.MapIndex(k).Interface()
		}
		f.visit(object, secret)
	}
}

func (f *finder) visitText(text string, secret bool) {
	if inner, ok := parseJSONText(text); ok {
		f.visit(inner, secret)
		return
	}
	if secret {
		f.add(text)
		return
	}
	for _, m := range secretFragments().FindAllStringSubmatch(text[:min(len(text), maxFragments)], -1) {
		if !IsSecretName(m[1]) {
			continue
		}
		f.add(m[2])
		f.add(m[3])
		if strings.ContainsAny(m[4], "0123456789+/=_-$!@#%^*") { // no word of a sentence
			f.add(m[4])
		}
	}
}

func (f *finder) addNumber(text string, secret bool) {
	if secret {
		f.add(text)
	}
}

// add adds a text, and that behind the scheme of an Authorization header.
func (f *finder) add(text string) {
	if scheme, rest, ok := strings.Cut(text, " "); ok && slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(scheme)) {
		f.add(strings.TrimSpace(rest))
	}
	if len(text) >= MinLength && !slices.Contains(f.found, text) {
		f.found = append(f.found, text)
	}
}

// isSecretText reports whether a value is a secret name.
func isSecretText(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= 64 && IsSecretName(s)
}

// parseJSONText parses a text that is a JSON object or list. Numbers keep their text.
func parseJSONText(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil && d.InputOffset() == int64(len(text))
}
