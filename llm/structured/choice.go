package structured

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/weir-run/weir/internal/excerpt"
)

// ErrNone means that an answer chooses none of the names, and says so.
var ErrNone = errors.New("it names none of them")

// Choice returns the one of the names that an answer gives: as JSON, under the key member or as its only value, or as
// the name alone, ignoring case, quotes and punctuation. A name inside a sentence does not count, because the
// sentence may negate it. An answer that says that none applies gives ErrNone; every other error is for the model.
func Choice(text, member string, names []string) (string, error) {
	text = answerOf(text)
	if text == "" {
		return "", errors.New("it is empty")
	}
	if v, n, err := decode(text); err == nil && bare(text[n:]) == "" {
		return chosen(v, member, names)
	}
	s := scan(text)
	if len(s.values) == 0 && len(s.broken) == 0 {
		if s.unclosed && bare(s.rest) == "" {
			return "", errors.New("its reasoning does not end, and no answer follows")
		}
		return named(s.rest, member, names)
	}
	var found []string
	var none, first error
	for _, v := range s.values {
		name, err := chosen(v, member, names)
		switch {
		case errors.Is(err, ErrNone):
			none = err
		case err == nil && !slices.Contains(found, name):
			found = append(found, name)
		case err != nil && first == nil:
			first = err
		}
	}
	switch {
	case len(found) > 1 || len(found) == 1 && none != nil:
		return "", errors.New("it contains more than one; give one")
	case len(s.broken) > 0:
		return "", errors.New(s.broken[0])
	case len(found) == 1:
		return found[0], nil
	case none != nil:
		return "", none
	}
	return "", first
}

// chosen returns the name in a JSON value.
func chosen(v any, member string, names []string) (string, error) {
	switch t := v.(type) {
	case nil:
		return "", ErrNone
	case string:
		return named(t, member, names)
	case []any:
		if len(t) == 1 {
			return chosen(t[0], member, names)
		}
		return "", fmt.Errorf("it is a list of %d; give one", len(t))
	case map[string]any:
		if as, ok := sameIgnoringCase(member, t, nil); ok {
			return chosen(t[as], member, names)
		}
		if len(t) == 1 {
			for _, one := range slices.Collect(maps.Values(t)) {
				if text, ok := one.(string); ok {
					return named(text, member, names)
				}
			}
		}
		return "", fmt.Errorf("it has no member %q", member)
	}
	return "", fmt.Errorf("%s is none of: %s", quoteShort(jsonText(v)), strings.Join(names, ", "))
}

// label matches text that models write before a name. It is compiled on first use.
var label = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // a compiled table
	return regexp.MustCompile(`(?i)^(the\s+)?(final\s+)?(category|answer|label|intent|class|classification|result|output)(\s+is)?\s*[:=]\s*`)
})

// named returns the name that a text consists of.
func named(text, member string, names []string) (string, error) {
	text = unfenced(bare(text))
	unlabelled := label().ReplaceAllString(trimmed(text), "")
	for _, as := range []string{text, unlabelled, strings.TrimLeft(strings.TrimPrefix(text, member), ":= "), unnumbered(unlabelled, names), unboxed(unlabelled)} {
		if name, ok := match(as, names); ok {
			return name, nil
		}
	}
	switch fold(trimmed(unlabelled)) {
	case "none", "null", "none of these", "none of them", "none of the above", "none of the categories", "no category", "n/a":
		return "", ErrNone
	}
	if text == "" {
		return "", errors.New("it is empty")
	}
	return "", fmt.Errorf("%q is none of: %s", quoteShort(text), strings.Join(names, ", "))
}

// unnumbered is a text without the number of a list item before it. Where names begin with digits, a number may be one.
func unnumbered(text string, names []string) string {
	if slices.ContainsFunc(names, func(n string) bool { return n != "" && n[0] >= '0' && n[0] <= '9' }) {
		return text
	}
	rest := strings.TrimLeft(text, "0123456789")
	if rest == text || rest == "" || !strings.ContainsRune(".):", rune(rest[0])) {
		return text
	}
	return strings.TrimSpace(rest[1:])
}

// unboxed is the text in the LaTeX box in which models put an answer.
func unboxed(text string) string {
	_, boxed, _ := strings.Cut(text, `\boxed{`)
	if inner, _, ok := strings.Cut(boxed, "}"); ok && strings.HasPrefix(text, `\boxed{`) {
		return strings.TrimSuffix(strings.TrimPrefix(inner, `\text{`), "}")
	}
	return text
}

// match returns the name that equals a text, ignoring case, quotes and punctuation.
func match(text string, names []string) (string, bool) {
	for _, as := range []func(string) string{
		func(s string) string { return s }, trimmed,
		func(s string) string { return fold(trimmed(s)) },
	} {
		var found []string
		for _, name := range names {
			if as(text) == name || as(text) == as(name) {
				found = append(found, name)
			}
		}
		if len(found) == 1 {
			return found[0], true
		}
		if len(found) > 1 {
			return "", false
		}
	}
	return "", false
}

// fold converts a text for comparison: to lower case, with one kind of separator.
func fold(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return unicode.IsSpace(r) || r == '_' || r == '-'
	}), " ")
}

// around has the characters that may surround a name: quotes of all languages, Markdown marks, ends of sentences.
const around = "\"'`´“”„‟‘’‚‛«»‹›「」『』《》〈〉＂＇*_~#>.,;:!?。．！？、，；：()[]<>"

// trimmed returns a text without what may stand around a name.
func trimmed(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(around, r) })
}

// quotes are pairs of characters that a text may stand in.
func quotes() []string {
	return []string{`""`, "''", "``", "“”", "„“", "„”", "‘’", "«»", "»«", "‹›", "「」", "『』"}
}

// unquoted returns a text without the quotes around it.
func unquoted(s string) (string, bool) {
	for _, pair := range quotes() {
		r := []rune(pair)
		if inner, ok := strings.CutPrefix(s, string(r[0])); ok {
			if inner, ok = strings.CutSuffix(inner, string(r[1])); ok && !strings.ContainsAny(inner, pair) {
				return inner, true
			}
		}
	}
	return s, false
}

// unfenced returns what stands in a fence, where the text is one and nothing else.
func unfenced(text string) string {
	const fence = "```"
	inner, ok := strings.CutPrefix(text, fence)
	if !ok {
		return text
	}
	if inner, ok = strings.CutSuffix(inner, fence); !ok || strings.Contains(inner, fence) {
		return text
	}
	if tag, rest, lines := strings.Cut(inner, "\n"); lines && !strings.ContainsAny(strings.TrimSpace(tag), " \t") {
		inner = rest
	}
	return bare(inner)
}

// quoteShort quotes the beginning of a text for an error message.
func quoteShort(s string) string {
	return excerpt.Chars(s, 120)
}
