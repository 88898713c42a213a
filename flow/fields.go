package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/flow/schema"
	"github.com/weir-run/weir/internal/excerpt"
)

// fields reads the keys of one object and reports unknown ones.
type fields struct {
	l    *loader
	v    *value
	what string // "a node", for messages
}

// object returns the fields of v, false if v is not an object.
func (l *loader) object(v *value, what string) (fields, bool) {
	if v.kind != kindObject {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be an object; got %s", what, v.kind), "")
		return fields{}, false
	}
	return fields{l, v, what}, true
}

// rejectUnknown reports every key that is not listed.
func (f fields) rejectUnknown(keys ...string) {
	for i := range f.v.members {
		m := &f.v.members[i]
		if !slices.Contains(keys, m.key) {
			f.l.reportAtKey(m, CodeUnknownKey, fmt.Sprintf("%s has no key %s; expected one of %s", f.what, quote(m.key), strings.Join(keys, ", ")),
				f.l.nearest(m.key, func() []string { return keys }))
		}
	}
}

// text reads a text; for another scalar it returns the source.
func (f fields) text(key string) string {
	v := f.v.get(key)
	if v == nil || v.kind == kindNull {
		return ""
	}
	s, ok := v.asText()
	if !ok {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be a text; got %s", key, v.kind), "")
	}
	return s
}

// choice reads one of the given texts; "" if the key is absent.
func (f fields) choice(key string, of ...string) string {
	v := f.v.get(key)
	if v == nil {
		return ""
	}
	s, ok := v.asText()
	if !ok || !slices.Contains(of, s) {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be one of %s; got %s", key, strings.Join(of, ", "), f.l.describe(v)),
			f.l.nearest(s, func() []string { return of }))
		return ""
	}
	return s
}

// flag reads a bool.
func (f fields) flag(key string) bool {
	v := f.v.get(key)
	if v == nil {
		return false
	}
	b, ok := v.scalar.(bool)
	if !ok || v.kind != kindBool {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be true or false; got %s", key, f.l.describe(v)), "")
	}
	return b
}

// count reads a whole number from 1 to a limit; 0 if the key is absent.
func (f fields) count(key string, most int64) int {
	v := f.v.get(key)
	if v == nil {
		return 0
	}
	i, ok := v.scalar.(int64)
	if !ok || v.kind != kindInt || i < 1 || i > most {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be a whole number from 1 to %d; got %s", key, most, f.l.describe(v)), "")
		return 0
	}
	return int(i)
}

// duration reads a duration: text in Go's syntax, or whole seconds.
func (f fields) duration(key string) time.Duration {
	v := f.v.get(key)
	if v == nil {
		return 0
	}
	return f.l.duration(v, key)
}

// maxDuration limits timeouts, waits and lifetimes: ten years.
const maxDuration = 10 * 365 * 24 * time.Hour

func (l *loader) duration(v *value, what string) time.Duration {
	var d time.Duration
	switch v.kind {
	case kindInt:
		s, _ := v.scalar.(int64)
		if s >= 0 && s <= int64(maxDuration/time.Second) {
			return time.Duration(s) * time.Second
		}
		d = -1
	case kindText:
		var err error
		if d, err = time.ParseDuration(v.text); err != nil {
			d = -1
		}
	default:
		d = -1
	}
	if d < 0 || d > maxDuration {
		l.reportAt(v, CodeBadDuration, fmt.Sprintf("%s must be a duration from 0 to ten years; got %s", what, l.describe(v)), "write 30s, 5m or 1h30m, or whole seconds")
		return 0
	}
	return d
}

// entries lists the members of the object under key; another kind is reported.
func (f fields) entries(key, what string) []member {
	v := f.v.get(key)
	if v == nil {
		return nil
	}
	if v.kind == kindNull {
		return nil
	}
	if v.kind != kindObject {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be an object of %s by name; got %s", key, what, v.kind), "")
		return nil
	}
	return v.members
}

// describe describes a value for a message.
func (l *loader) describe(v *value) string {
	switch v.kind {
	case kindText:
		return quote(v.text)
	case kindNull, kindList, kindObject:
		return v.kind.String()
	default:
		return excerpt.Bytes(v.text, maxQuoted)
	}
}

// schema reads a JSON Schema: an object. The values of text enums are converted to text.
func (f fields) schema(key string) map[string]any {
	v := f.v.get(key)
	if v == nil || v.kind == kindNull {
		return nil
	}
	if v.kind != kindObject {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be a JSON Schema, an object; got %s", key, v.kind), "")
		return nil
	}
	s, _ := schemaValue(v).(map[string]any)
	if _, err := schema.Compile(s); err != nil {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is not a JSON Schema: %v", key, err), "")
	}
	return s
}

// schemaValue is v.any, but converts the listed values of a text schema to text: YAML reads
// `enum: [true, no]` as a bool and a text.
func schemaValue(v *value) any {
	switch v.kind {
	case kindList:
		out := make([]any, len(v.items))
		for i, e := range v.items {
			out[i] = schemaValue(e)
		}
		return out
	case kindObject:
		out := make(map[string]any, len(v.members))
		textual := v.get("type") != nil && v.get("type").text == "string"
		for _, m := range v.members {
			if textual && (m.key == "enum" || m.key == "const" || m.key == "default") {
				out[m.key] = scalarsAsText(m.val)
				continue
			}
			out[m.key] = schemaValue(m.val)
		}
		return out
	default:
		return v.any()
	}
}

// scalarsAsText returns v with every scalar converted to text.
func scalarsAsText(v *value) any {
	if v.kind == kindList {
		out := make([]any, len(v.items))
		for i, e := range v.items {
			out[i] = scalarsAsText(e)
		}
		return out
	}
	if s, ok := v.asText(); ok {
		return s
	}
	return v.any()
}

// members is entries without a report.
func (f fields) members(key string) []member {
	if v := f.v.get(key); v != nil {
		return v.members
	}
	return nil
}
