package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
)

// decode fills a settings struct from the `with` of a node. It is strict: a
// setting the struct does not have, or a value of another type, is an error
// that names the setting.
func decode[T any](with map[string]any) (*T, error) {
	settings := new(T)
	fields := reflect.ValueOf(settings).Elem()
	for _, name := range slices.Sorted(maps.Keys(with)) {
		field, ok := settingField(fields, name)
		if !ok {
			return nil, fmt.Errorf("setting %q: unknown; known are %s", name, strings.Join(settingNames(fields), ", "))
		}
		raw, err := engine.AppendValue(nil, with[name])
		if err != nil {
			return nil, fmt.Errorf("setting %q: %w", name, err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(field.Addr().Interface()); err != nil {
			return nil, fmt.Errorf("setting %q: %w", name, err)
		}
	}
	return settings, nil
}

// settingField finds the field whose json tag is name, also in an embedded struct.
func settingField(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("json") == name {
			return v.Field(i), true
		}
		if f.Anonymous {
			if field, ok := settingField(v.Field(i), name); ok {
				return field, true
			}
		}
	}
	return reflect.Value{}, false
}

// settingNames lists the json tags of a struct.
func settingNames(v reflect.Value) []string {
	var names []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			names = append(names, settingNames(v.Field(i))...)
		} else if n := f.Tag.Get("json"); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// template is a setting that may hold {{ }}, compiled as it is decoded.
type template struct{ t *expr.Template }

// UnmarshalJSON compiles the template.
func (t *template) UnmarshalJSON(raw []byte) error {
	v, err := engine.ParseValue(raw)
	if err != nil {
		return err
	}
	t.t, err = expr.ParseTemplate(v)
	return err
}

// isSet reports whether the settings have it.
func (t template) isSet() bool { return t.t != nil }

// literal returns what the template is where nothing in it is evaluated.
func (t template) literal() (engine.Value, bool) {
	if t.t == nil {
		return nil, false
	}
	return t.t.Literal()
}

// text renders the template; where it is not set, "". The error names setting.
func (t template) text(vars expr.Vars, setting string) (string, error) {
	if t.t == nil {
		return "", nil
	}
	s, err := t.t.Text(vars)
	if err != nil {
		return "", permanentError(CodeExpression, "%s: %v", setting, err)
	}
	return s, nil
}

// value evaluates the template; a single {{ }} keeps its type.
func (t template) value(vars expr.Vars, setting string) (engine.Value, error) {
	if t.t == nil {
		return nil, nil
	}
	v, err := t.t.Eval(vars)
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		return nil, permanentError(CodeExpression, "%s: %v", setting, err)
	}
	return v, nil
}

// celExpression is a setting that is a bare CEL expression, which was compiled when the
// flow was read and is again when it is first evaluated.
type celExpression struct{ p *expr.Program }

// UnmarshalJSON takes the expression.
func (p *celExpression) UnmarshalJSON(raw []byte) error {
	var src string
	if err := json.Unmarshal(raw, &src); err != nil {
		return fmt.Errorf("an expression is a text: %w", err)
	}
	p.p = expr.Defer(src)
	return nil
}

// isSet reports whether the settings have it.
func (p celExpression) isSet() bool { return p.p != nil }

// value evaluates the expression. The error names setting.
func (p celExpression) value(vars expr.Vars, setting string) (engine.Value, error) {
	v, err := p.p.Eval(vars)
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		return nil, permanentError(CodeExpression, "%s: %v", setting, err)
	}
	return v, nil
}

// isTrue evaluates a condition; anything but a boolean is an error.
func (p celExpression) isTrue(vars expr.Vars, setting string) (bool, error) {
	v, err := p.value(vars, setting)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, permanentError(CodeExpression, "%s: the condition gave %s, expected true or false", setting, describeValue(v))
	}
	return b, nil
}

// duration is a setting like "90s", "5m", "1h30m", or a number of seconds.
type duration struct{ time.Duration }

// UnmarshalJSON reads the duration.
func (d *duration) UnmarshalJSON(raw []byte) error {
	v, err := engine.ParseValue(raw)
	if err != nil {
		return err
	}
	d.Duration, err = durationOf(v)
	return err
}

// maxDuration bounds waits and lifetimes: ten years.
const maxDuration = 10 * 365 * 24 * time.Hour

// durationOf reads a duration from a value: text as Go writes durations, or a
// number of seconds; from 0 to ten years.
func durationOf(v engine.Value) (time.Duration, error) {
	var d time.Duration
	switch t := v.(type) {
	case int64:
		if t > int64(maxDuration/time.Second) {
			return 0, fmt.Errorf("%d seconds are more than ten years", t)
		}
		d = time.Duration(t) * time.Second
	case float64:
		if t > maxDuration.Seconds() {
			return 0, fmt.Errorf("%g seconds are more than ten years", t)
		}
		d = time.Duration(t * float64(time.Second))
	case string:
		var err error
		if d, err = time.ParseDuration(t); err != nil {
			return 0, fmt.Errorf("%q is not a duration: write 90s, 5m or 1h30m, or a number of seconds", t)
		}
	default:
		return 0, fmt.Errorf("%s is not a duration: write 90s, 5m or 1h30m, or a number of seconds", describeValue(v))
	}
	if d < 0 || d > maxDuration {
		return 0, fmt.Errorf("the duration %v is not between 0 and ten years", d)
	}
	return d, nil
}

// objectSchema returns the JSON Schema of a `with` that takes these settings and no other.
func objectSchema(properties map[string]any, required ...string) map[string]any {
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		names := make([]any, len(required))
		for i, r := range required {
			names[i] = r
		}
		s["required"] = names
	}
	return s
}

// settingSchema returns the JSON Schema of one setting of a type, "" for any type.
func settingSchema(jsonType, description string) map[string]any {
	s := map[string]any{"description": description}
	if jsonType != "" {
		s["type"] = jsonType
	}
	return s
}

// choiceSchema returns a setting that takes one of these texts.
func choiceSchema(description, first string, more ...string) map[string]any {
	s := settingSchema("string", description+" Default: "+first+".")
	values := []any{first}
	for _, m := range more {
		values = append(values, m)
	}
	s["enum"] = values
	return s
}

// templateSchema returns a setting that may hold {{ inputs.* state.* run.* }}.
func templateSchema(jsonType, description string) map[string]any {
	return withRole(settingSchema(jsonType, description), "template")
}

// expressionSchema returns a setting that is bare CEL.
func expressionSchema(description string) map[string]any {
	return withRole(settingSchema("string", description), "expression")
}

// secretTemplateSchema returns a template that may hold {{ secrets.NAME }} too.
func secretTemplateSchema(jsonType, description string) map[string]any {
	return withRole(settingSchema(jsonType, description), "secret")
}

// durationSchema returns a duration.
func durationSchema(description string) map[string]any {
	s := settingSchema("", description+" Text like 90s, 5m or 1h30m, or a number of seconds.")
	s["type"] = []any{"string", "number"}
	return s
}

func withRole(s map[string]any, role string) map[string]any {
	s["x-weir"] = role
	return s
}

// settingProblem returns what a spec's Check reports of a setting, "" for all of them.
func settingProblem(setting, format string, args ...any) flow.Problem {
	return flow.Problem{Code: flow.CodeInvalidSetting, Setting: setting, Message: fmt.Sprintf(format, args...)}
}
