package builtin

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/flow/expr"
)

func TestBadSettingsAreErrorsThatNameTheSetting(t *testing.T) {
	for _, c := range []struct {
		kind string
		with map[string]any
		want string
	}{
		{"userInput", map[string]any{"promt": "?"}, `setting "promt": unknown; known are prompt, schema, history, timeout`},
		{"userInput", map[string]any{"history": "yes"}, `setting "history"`},
		{"userInput", map[string]any{"timeout": "soon"}, `setting "timeout": "soon" is not a duration`},
		{"userInput", map[string]any{"timeout": -1}, `setting "timeout": the duration -1s is not between`},
		{"userInput", map[string]any{"schema": map[string]any{"type": "no such type"}}, `setting "schema"`},
		{"userInput", map[string]any{"schema": map[string]any{"$ref": "file:///etc/passwd"}}, `setting "schema"`},
		{"template", map[string]any{"text": "{{ inputs.a"}, `setting "text"`},
		{"transform", map[string]any{"expr": 5}, `setting "expr": an expression is a text`},
		{"transform", map[string]any{"fields": map[string]any{"a": 1}}, `setting "fields"`},
		{"decision", map[string]any{"expr": "true", "branches": []any{1.5}}, `setting "branches": 1.5 cannot name a branch`},
		{"switch", map[string]any{"cases": []any{map[string]any{"when": "true", "too": "a"}}}, `setting "cases"`},
		{"tools", map[string]any{"tools": "all"}, `setting "tools": expected auto or a list of tool names`},
		{"wait", map[string]any{"for": "a while"}, `setting "for"`},
		{"wait", map[string]any{"until": "tomorrow"}, `setting "until"`},
		{"wait", map[string]any{"for": 1e12}, `more than ten years`},
		{"httpRequest", map[string]any{"expect": []any{"6xx"}}, `setting "expect": "6xx" is not a class`},
		{"httpRequest", map[string]any{"expect": "all"}, `setting "expect"`},
		{"newContext", map[string]any{"messages": []any{map[string]any{"txt": "x"}}}, `setting "messages"`},
	} {
		_, err := Catalogue().Type(c.kind).Prepare(c.with)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: error %v, expected %q in it", c.kind, c.with, err, c.want)
		}
	}
}

func TestSettingsThatTheSchemaCannotJudgeAreReported(t *testing.T) {
	for _, c := range []struct {
		kind string
		with map[string]any
		want string
	}{
		{"wait", map[string]any{}, "expected one of for and until"},
		{"wait", map[string]any{"for": 1, "until": "x"}, "expected one of for and until"},
		{"loop", map[string]any{"body": map[string]any{}}, "the loop has no end"},
		{"transform", map[string]any{}, "nothing to compute"},
		{"transform", map[string]any{"expr": "1", "fields": map[string]any{}}, "both given"},
		{"transform", map[string]any{"fields": map[string]any{"error": "1"}}, "cannot be called error"},
		{"decision", map[string]any{"expr": "1", "branches": []any{"result"}}, `"result" cannot be the name of a branch`},
		{"switch", map[string]any{"cases": []any{}, "default": "a\tb"}, `"a\tb" cannot be the name of a branch`},
		{"template", map[string]any{"text": map[string]any{}}, "needs format: json"},
		{"httpRequest", map[string]any{"url": "x", "body": "y"}, "a GET request cannot have a body"},
		{"output", map[string]any{"schema": map[string]any{"minLength": "x"}}, "not a JSON Schema"},
	} {
		problems := Catalogue().Lookup(c.kind).Check(c.with)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s with %v: problems %v, expected one with %q", c.kind, c.with, problems, c.want)
		}
	}
}

func TestDurationsAreTextOrSeconds(t *testing.T) {
	for _, c := range []struct {
		in   any
		want time.Duration
	}{
		{"90s", 90 * time.Second}, {"1h30m", 90 * time.Minute}, {int64(5), 5 * time.Second}, {0.25, 250 * time.Millisecond},
	} {
		if d, err := durationOf(c.in); err != nil || d != c.want {
			t.Errorf("%v is %v, %v; expected %v", c.in, d, err, c.want)
		}
	}
	for _, bad := range []any{nil, "", "5", "-1s", true, 1e300, int64(1) << 62, "999999h"} {
		if d, err := durationOf(bad); err == nil {
			t.Errorf("%v is read as %v", bad, d)
		}
	}
}

func TestTemplateKeepsTypesAndInsertsTextVerbatim(t *testing.T) {
	s, err := decode[templateNode](map[string]any{"text": map[string]any{"a": "{{ inputs.n }}", "b": "<{{ inputs.s }}>"}})
	if err != nil {
		t.Fatal(err)
	}
	vars := expr.Map{"inputs": map[string]any{"n": int64(3), "s": "{{ inputs.n }}"}}
	v, err := s.Text.value(vars, "text")
	if err != nil || jsonText(v) != `{"a":3,"b":"<{{ inputs.n }}>"}` {
		t.Errorf("got %s, %v", jsonText(v), err)
	}
}

func TestMissingInputErrorNamesSettingAndReference(t *testing.T) {
	s, err := decode[templateNode](map[string]any{"text": "{{ inputs.absent }}"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Text.text(expr.Map{"inputs": map[string]any{}}, "text")
	if err == nil || !strings.Contains(err.Error(), "text:") || !strings.Contains(err.Error(), "absent") {
		t.Errorf("error %v, expected one that names text and absent", err)
	}
}
