package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/flow/schema"
)

// fields reads the keys of one object and reports what is not among them.
type fields struct {
	l    *loader
	v    *value
	what string // "a node", for messages
}

// object is the fields of v, false where v is no object.
func (l *loader) object(v *value, what string) (fields, bool) {
	if v.kind != kindObject {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is an object; this is %s", what, v.kind), "")
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
				f.l.suggest(m.key, func() []string { return keys }))
		}
	}
}

// text reads a text; another scalar is the text of its source.
func (f fields) text(key string) string {
	v := f.v.get(key)
	if v == nil || v.kind == kindNull {
		return ""
	}
	s, ok := v.asText()
	if !ok {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is a text; this is %s", key, v.kind), "")
	}
	return s
}

// choice reads one of the given texts; "" where the key is absent.
func (f fields) choice(key string, of ...string) string {
	v := f.v.get(key)
	if v == nil {
		return ""
	}
	s, ok := v.asText()
	if !ok || !slices.Contains(of, s) {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is one of %s; this is %s", key, strings.Join(of, ", "), f.l.describe(v)),
			f.l.suggest(s, func() []string { return of }))
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
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is true or false; this is %s", key, f.l.describe(v)), "")
	}
	return b
}

// count reads a whole number from 1 up to a bound; 0 where the key is absent.
func (f fields) count(key string, most int64) int {
	v := f.v.get(key)
	if v == nil {
		return 0
	}
	i, ok := v.scalar.(int64)
	if !ok || v.kind != kindInt || i < 1 || i > most {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is a whole number from 1 to %d; this is %s", key, most, f.l.describe(v)), "")
		return 0
	}
	return int(i)
}

// duration reads a duration: text as Go writes it, or whole seconds.
func (f fields) duration(key string) time.Duration {
	v := f.v.get(key)
	if v == nil {
		return 0
	}
	return f.l.duration(v, key)
}

// maxDuration bounds timeouts, waits and lifetimes: ten years.
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
		l.reportAt(v, CodeBadDuration, fmt.Sprintf("%s is a duration from 0 to ten years; this is %s", what, l.describe(v)), "write 30s, 5m or 1h30m, or whole seconds")
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
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is an object of %s by name; this is %s", key, what, v.kind), "")
		return nil
	}
	return v.members
}

// describe names a value in a message.
func (l *loader) describe(v *value) string {
	switch v.kind {
	case kindText:
		return quote(v.text)
	case kindNull, kindList, kindObject:
		return v.kind.String()
	default:
		return shorten(v.text)
	}
}

// schema reads a JSON Schema: an object whose text enums are text.
func (f fields) schema(key string) map[string]any {
	v := f.v.get(key)
	if v == nil || v.kind == kindNull {
		return nil
	}
	if v.kind != kindObject {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is a JSON Schema, an object; this is %s", key, v.kind), "")
		return nil
	}
	s, _ := schemaValue(v).(map[string]any)
	if _, err := schema.Compile(s); err != nil {
		f.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s is not a JSON Schema: %v", key, err), "")
	}
	return s
}

// schemaValue is v.any, but what a schema of texts lists is text: YAML reads
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

// scalarsAsText is v with every scalar in it as text.
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
