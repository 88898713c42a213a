package structured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow/schema"
)

// Form is the schema of an answer.
type Form struct {
	schema map[string]any
	fits   *schema.Schema
}

// Compile compiles a JSON Schema.
func Compile(of map[string]any) (*Form, error) {
	s, err := schema.Compile(of)
	if err != nil {
		return nil, err
	}
	return &Form{schema: of, fits: s}, nil
}

// Read returns the value in an answer, as JSON. The answer may be JSON, have prose, a code fence or reasoning around
// it, have a comma before a closing bracket, or be a JSON string that contains JSON. A value that does not match the
// schema is tried again with the schema's spelling of enums and member names, with words as booleans, and without
// optional members that are null. If two different values match, or a broken object stands next to one that matches,
// the answer is refused. The error is for the model.
func (f *Form) Read(text string) (string, error) {
	text = answerOf(text)
	if text == "" {
		return "", errors.New("it is empty")
	}
	if v, n, err := decode(text); err == nil && bare(text[n:]) == "" {
		return f.whole(v, text[:n])
	}
	s := scan(text)
	if len(s.values) == 0 {
		if v, ok := f.scalar(s.rest); ok {
			return v, nil
		}
	}
	return f.choose(s)
}

// whole reads an answer that is one JSON value.
func (f *Form) whole(v any, text string) (string, error) {
	as, err := f.fit(v)
	if err == nil {
		if as == nil {
			return text, nil
		}
		return *as, nil
	}
	if inner, ok := v.(string); ok {
		if v, n, e := decode(bare(inner)); e == nil && n == len(bare(inner)) {
			if as, e := f.fit(v); e == nil {
				return canonicalText(as, bare(inner)), nil
			}
		}
		if v, ok := f.scalar(inner); ok {
			return v, nil
		}
	}
	return "", err
}

// choose returns the only one of the found values that matches.
func (f *Form) choose(s *scanned) (string, error) {
	var fitting []string
	var first error
	for _, v := range s.values {
		as, err := f.fit(v)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if text := canonicalText(as, jsonText(v)); !slices.Contains(fitting, text) {
			fitting = append(fitting, text)
		}
	}
	switch {
	case len(fitting) > 1:
		return "", fmt.Errorf("it holds %d different values that fit; give one", len(fitting))
	case len(s.broken) > 0:
		return "", errors.New(s.broken[0])
	case len(fitting) == 1:
		return fitting[0], nil
	case first != nil:
		return "", first
	case s.unclosed:
		return "", errors.New("its reasoning does not end, and no answer follows")
	}
	return "", errors.New("it is not JSON")
}

// canonicalText returns the text of an adapted value, otherwise its own.
func canonicalText(changed *string, own string) string {
	if changed != nil {
		return *changed
	}
	return own
}

// fit returns nil for a value that matches unchanged, and the adapted value if that matches.
func (f *Form) fit(v any) (*string, error) {
	err := f.fits.Check(v)
	if err == nil {
		return nil, nil
	}
	adapted := adapt(f.schema, v)
	if f.fits.Check(adapted) != nil {
		return nil, err
	}
	text := jsonText(adapted)
	return &text, nil
}

// scalar reads a string, number or boolean without brackets.
func (f *Form) scalar(text string) (string, bool) {
	switch f.schema["type"] {
	case "object", "array":
		return "", false
	}
	text = unfenced(bare(text))
	if v, n, err := decode(text); err == nil && n == len(text) {
		if as, err := f.fit(v); err == nil {
			return canonicalText(as, text), true
		}
	}
	if names := enumOf(f.schema); names != nil {
		if name, ok := match(text, names); ok {
			return jsonText(name), true
		}
		return "", false
	}
	if f.schema["type"] == "boolean" {
		if v, ok := truth(trimmed(text)); ok {
			return jsonText(v), true
		}
	}
	if inner, quoted := unquoted(text); quoted && f.fits.Check(inner) == nil {
		return jsonText(inner), true
	}
	return "", false
}

// adapt converts a value to the schema's spelling.
func adapt(s map[string]any, v any) any {
	switch t := v.(type) {
	case string:
		if names := enumOf(s); names != nil && !slices.Contains(names, t) {
			if name, ok := match(t, names); ok {
				return name
			}
		}
		if s["type"] == "boolean" {
			if b, ok := truth(t); ok {
				return b
			}
		}
	case json.Number:
		if s["type"] == "boolean" && (t == "0" || t == "1") {
			return t == "1"
		}
	case []any:
		items, _ := s["items"].(map[string]any)
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = adapt(items, e)
		}
		return out
	case map[string]any:
		return adaptObject(s, t)
	}
	return v
}

func adaptObject(s, o map[string]any) any {
	out := maps.Clone(o)
	properties, _ := s["properties"].(map[string]any)
	required := texts(s["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, there := out[name]; !there {
			if as, ok := sameIgnoringCase(name, out, properties); ok {
				out[name] = out[as]
				delete(out, as)
			}
		}
		v, there := out[name]
		p, _ := properties[name].(map[string]any)
		switch {
		case !there:
		case v == nil && !slices.Contains(required, name) && p["type"] != "null" && !slices.Contains(texts(p["type"]), "null"):
			delete(out, name)
		default:
			out[name] = adapt(p, v)
		}
	}
	return out
}

// sameIgnoringCase returns the only member that equals name if case is ignored and that is no other property.
func sameIgnoringCase(name string, o, properties map[string]any) (string, bool) {
	var found []string
	for _, as := range slices.Sorted(maps.Keys(o)) {
		if _, own := properties[as]; !own && fold(as) == fold(name) {
			found = append(found, as)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// enumOf returns the strings that a schema allows, nil if it allows other values.
func enumOf(s map[string]any) []string {
	switch s["enum"].(type) {
	case []any, []string:
		return texts(s["enum"])
	}
	return nil
}

// texts returns the strings of a list.
func texts(v any) []string {
	switch l := v.(type) {
	case []string:
		return l
	case []any:
		var out []string
		for _, e := range l {
			if t, ok := e.(string); ok {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

// truth parses a boolean as models write it.
func truth(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "y", "1":
		return true, true
	case "false", "no", "n", "0":
		return false, true
	}
	return false, false
}

func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "" // v was decoded from JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}
