package codegen

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/scrub"
)

// Limits of what a model is shown of values.
const (
	maxNames = 100
	maxDepth = 4
)

// describe lists values for a model, one a line: names, types and sizes, but no content.
func describe(values map[string]any) string {
	if len(values) == 0 {
		return "(nothing)"
	}
	var b strings.Builder
	names := sortedKeys(values)
	for _, name := range names[:min(len(names), maxNames)] {
		fmt.Fprintf(&b, "- %q: %s\n", name, kind(values[name], true, 0))
	}
	if more := len(names) - maxNames; more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// kind returns the type of a value, down to a few levels, optionally with sizes.
func kind(v engine.Value, sizes bool, depth int) string {
	switch t := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		if sizes {
			return fmt.Sprintf("text of %d characters", utf8.RuneCountInString(t))
		}
		return "text"
	case []any:
		return listKind(t, sizes, depth)
	case map[string]any:
		return objectKind(t, sizes, depth)
	}
	return fmt.Sprintf("%T", v)
}

func listKind(l []any, sizes bool, depth int) string {
	var kinds []string
	for _, e := range l {
		k := "…"
		if depth < maxDepth {
			k = kind(e, false, depth+1)
		}
		if !slices.Contains(kinds, k) && len(kinds) < 5 {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	of := "list of " + strings.Join(kinds, " or ")
	if len(l) == 0 {
		of = "empty list"
	}
	if sizes && len(l) > 0 {
		return fmt.Sprintf("%s (%d elements)", of, len(l))
	}
	return of
}

func objectKind(o map[string]any, sizes bool, depth int) string {
	if depth >= maxDepth {
		return "object"
	}
	names := sortedKeys(o)
	parts := make([]string, 0, len(names))
	for _, name := range names[:min(len(names), maxNames)] {
		parts = append(parts, fmt.Sprintf("%q: %s", name, kind(o[name], sizes, depth+1)))
	}
	if len(names) > maxNames {
		parts = append(parts, "…")
	}
	return "object {" + strings.Join(parts, ", ") + "}"
}

// secretTexts returns the texts in values whose names mark them as secret.
func secretTexts(values ...map[string]any) []string {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return scrub.TextsUnderSecretNames(all...)
}

// redact removes secret texts from what a model is shown.
func redact(text string, secrets []string) string {
	var all scrub.Set
	for _, s := range secrets {
		all.Add(s, "[hidden]")
	}
	return all.Scrub(text)
}

// redactValue returns a value with secret texts removed.
func redactValue(v engine.Value, secrets []string) engine.Value {
	switch t := v.(type) {
	case string:
		return redact(t, secrets)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = redactValue(e, secrets)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, e := range t {
			out[name] = redactValue(e, secrets)
		}
		return out
	}
	return v
}

// jsonText returns a value as JSON for a model, at most n bytes.
func jsonText(v engine.Value, secrets []string, n int) string {
	b, err := engine.AppendValue(nil, redactValue(v, secrets))
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return excerpt.Bytes(string(b), n)
}
