package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow/schema"
)

func TestRefusedAnswerIsReportedWithPlaceAndExpectation(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile(map[string]any{
		"type": "object", "required": []string{"city"}, "additionalProperties": false,
		"properties": map[string]any{
			"city": map[string]any{"type": "string"},
			"via":  map[string]any{"type": "array", "items": map[string]any{"type": []any{"integer", "null"}}},
			"many": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/short"}},
		},
		"$defs": map[string]any{"short": map[string]any{"type": "string", "maxLength": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"city": "Bern", "via": [1, null]}`: "",
		`{"city": 1, "via": ["x"]}`:          "city: expected string, got number; via.0: expected null or integer, got string",
		`{"town": "Bern"}`:                   "missing property 'city'; additional properties 'town' not allowed",
		`[]`:                                 "expected object, got array",
		`{"city": "", "many": ["ab"]}`:       "many.0: maxLength: got 2, want 1",
	} {
		v, err := schema.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Check(v); err != nil {
			got = err.Error()
		}
		a, b := strings.Split(got, "; "), strings.Split(want, "; ")
		if len(a) != len(b) || !strings.Contains(got, b[0]) || !strings.Contains(got, b[len(b)-1]) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	long, _ := json.Marshal(map[string]any{"city": "x", "via": strings.Split("abcdefghijklmnop", "")})
	v, err := schema.Parse(string(long))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s.Check(v).Error(), "via."); n != 8 {
		t.Errorf("%d of 16 faults are named, want 8", n)
	}
}

func TestUnusableSchemaIsAnError(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]map[string]any{
		"only references inside the schema are allowed": {"$ref": "file:///etc/hostname"},
		"type":        {"type": "strin"},
		"unsupported": {"x": make(chan int)},
		"regex":       {"pattern": "("},
	} {
		if _, err := schema.Compile(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", s, err, want)
		}
	}
}

func TestOmissibleMemberIsOptionalAndNotNull(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile(map[string]any{"required": []any{"a"}, "properties": map[string]any{
		"a": map[string]any{"type": "string"}, "d": map[string]any{"type": "string"}, "b": map[string]any{"type": "string"},
		"c": map[string]any{"type": []any{"string", "null"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.OptionalNotNull(), " "); got != "b d" {
		t.Errorf("optional are %q", got)
	}
}
