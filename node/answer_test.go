package node

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestParseAnswerFollowsTheSchema(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema map[string]any
		text   string
		want   any
	}{
		{"no schema", nil, "42", "42"},
		{"text", map[string]any{"type": "string"}, "true", "true"},
		{"one of some texts", map[string]any{"enum": []any{"approve", "reject"}}, "approve", "approve"},
		{"a quoted text", map[string]any{"enum": []any{"approve", "reject"}}, `"approve"`, "approve"},
		{"an integer", map[string]any{"type": "integer"}, "42", int64(42)},
		{"a number", map[string]any{"type": "number"}, "1.5", 1.5},
		{"a boolean", map[string]any{"type": "boolean"}, "true", true},
		{"an object", map[string]any{"type": "object"}, `{"a": [1]}`, map[string]any{"a": []any{int64(1)}}},
		{"text or null", map[string]any{"type": []any{"string", "null"}}, "null", "null"},
		{"anything", map[string]any{}, "[1]", "[1]"},
	} {
		got, err := ParseAnswer(c.schema, c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q is %#v, %v; expected %#v", c.name, c.text, got, err, c.want)
		}
	}
}

func TestParseAnswerErrorNamesTheExpectedType(t *testing.T) {
	for _, c := range []struct {
		schema map[string]any
		text   string
		want   string
	}{
		{map[string]any{"enum": []any{"approve", "reject"}}, "maybe", "'approve', 'reject'"},
		{map[string]any{"type": "integer"}, "5 apples", "expected integer"},
		{map[string]any{"type": "integer"}, "", "expected integer"},
		{map[string]any{"type": "integer", "minimum": 3}, "2", "minimum"},
		{map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}, `{"a": 1}`, "a: "},
	} {
		v, err := ParseAnswer(c.schema, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v with %q: %v, %v; expected an error with %q", c.schema, c.text, v, err, c.want)
		}
	}
}

func TestSchemaCannotReferToOtherDocuments(t *testing.T) {
	for _, ref := range []string{"file:///etc/passwd", "http://127.0.0.1:9/s.json", "other.json"} {
		if _, err := CompileSchema(map[string]any{"$ref": ref}); err == nil {
			t.Errorf("a schema that refers to %s compiles", ref)
		}
	}
	s, err := CompileSchema(map[string]any{"$ref": "#/$defs/n", "$defs": map[string]any{"n": map[string]any{"type": "integer"}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Check(int64(1)) != nil || s.Check("x") == nil {
		t.Error("a reference inside the schema is not followed")
	}
}

func TestCheckAnswerWithoutSchemaAcceptsText(t *testing.T) {
	if err := CheckAnswer(nil, "yes"); err != nil {
		t.Error(err)
	}
	if err := CheckAnswer(nil, int64(1)); err == nil {
		t.Error("a number is accepted as text")
	}
}

func TestInvalidSchemasAndValuesReturnErrors(t *testing.T) {
	if err := CheckAnswer(map[string]any{"$ref": "#"}, "x"); err == nil {
		t.Error("a schema that is only itself accepts an answer")
	}
	if err := CheckAnswer(map[string]any{"type": "object"}, engine.Handle{ID: "main"}); err == nil {
		t.Error("a context is an answer")
	}
	if _, err := CompileSchema(map[string]any{"pattern": "("}); err == nil {
		t.Error("a pattern that is none compiles")
	}
}

func FuzzParseAnswer(f *testing.F) {
	schemas := []map[string]any{
		nil,
		{"type": "integer"},
		{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "number"}}},
		{"enum": []any{"approve", true, nil, int64(3)}},
		{"type": "array", "items": map[string]any{"type": "string", "maxLength": int64(3)}},
	}
	for _, seed := range []string{"", "42", "true", "null", `{"a": 1e400}`, `["x"]`, "approve", `{"$context": "main"}`, "\xff", "1 2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, schema := range schemas {
			v, err := ParseAnswer(schema, text)
			if err != nil {
				continue
			}
			if err := CheckAnswer(schema, v); err != nil {
				t.Errorf("%q is read as %#v, which is refused: %v", text, v, err)
			}
		}
	})
}
