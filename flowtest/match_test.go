package flowtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

// made is a flow that outputs the value of an input as it is.
const made = `
inputs: {v: {type: any}, w: {type: any}}
nodes: {a: {type: transform, with: {expr: run.inputs.v}}}
outputs: {v: "{{ a.value }}"}
`

func TestMatchersReportMismatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, expect, says string }{
		{"1", "1.0", ""},
		{"1", "2", "outputs.v: expected 2, got 1"},
		{`"1"`, "1", `expected 1 (a number), got "1" (a text)`},
		{"[1, {a: b}]", "[1, {a: b}]", ""},
		{"{a: [1, 2]}", "{a: [1, 3]}", "outputs.v.a[1]: expected 3, got 2"},
		{"{a: 1, b: 2}", "{a: 1}", "outputs.v.b: not expected, got 2"},
		{"{a: 1}", "{a: 1, b: 2}", "outputs.v.b: expected 2, and there is nothing"},
		{"{a: 1}", "{a: 1, b: {$absent: true}}", ""},
		{"{a: 1}", "{a: {$absent: true}}", "outputs.v.a: expected nothing, got 1"},
		{"[1, 2, 4]", "[1, 2, 3, 4]", "expected 4 elements, got 3 elements\n    1\n    2\n  - 3\n    4"},
		{"null", "null", ""},
		{"a text", "{$contains: text}", ""},
		{"a text", "{$contains: texts}", `expected a text that contains "texts", got "a text"`},
		{"[1, a]", "{$contains: a}", ""},
		{"[1, a]", "{$contains: b}", `expected a list that contains "b", got [1,"a"]`},
		{"a1", `{$matches: '^[a-z]\d$'}`, ""},
		{"a1", `{$matches: '^\d'}`, `matches "^\\d"`},
		{"abc", "{$startsWith: ab, $endsWith: bc, $length: 3}", ""},
		{"abc", "{$startsWith: ab, $endsWith: b}", `ends with "b"`},
		{"abc", "{$length: {$min: 4}}", "outputs.v.length: expected a number of at least 4, got 3"},
		{"0.3", "{$approx: 0.30000001}", ""},
		{"0.31", "{$approx: 0.3, $within: 0.02}", ""},
		{"0.33", "{$approx: 0.3, $within: 0.02}", "within 0.02 of 0.3, got 0.33"},
		{"3", "{$min: 3, $max: 3, $above: 2, $below: 4}", ""},
		{"3", "{$above: 3}", "expected a number above 3, got 3"},
		{"a", "{$max: 3}", `expected a number, got "a"`},
		{"a", "{$any: true}", ""},
		{"a", "{$any: text}", ""},
		{"1", "{$any: text}", "expected a value of kind text, got 1"},
		{"[2, 4]", "{$each: {$min: 2}}", ""},
		{"[2, 1]", "{$each: {$min: 2}}", "outputs.v[1]: expected a number of at least 2, got 1"},
		{"[1, 2, 3]", "{$subset: [1, 3]}", ""},
		{"[1, 2, 3]", "{$subset: [3, 1]}", "outputs.v[1]: expected 1; there is no such element after the first 3"},
		{"{a: 1, b: 2}", "{$subset: {a: 1}}", ""},
		{"{a: 1, b: 2}", "{$subset: {a: 2}}", "outputs.v.a: expected 2, got 1"},
		{"a", "{$oneOf: [b, a]}", ""},
		{"c", "{$oneOf: [b, a]}", `expected one of ["b","a"], got "c"`},
		{"abc", "{$all: [{$contains: a}, {$contains: d}]}", `contains "d"`},
		{"a", "{$not: b}", ""},
		{"a", "{$not: {$contains: a}}", "expected anything but"},
		{`'{"a": [1]}'`, "{$json: {a: [1]}}", ""},
		{`'{"a": [1]}'`, "{$json: {a: [2]}}", "outputs.v.a[0]: expected 2, got 1"},
		{"no", "{$json: {a: 1}}", "expected JSON"},
		{"{$ref: 1}", "{$equals: {$ref: 1}}", ""},
		{"{$ref: 1}", "{$equals: {$ref: 2}}", "expected {\"$ref\":2}"},
		{"5", "{$schema: {type: integer, maximum: 6}}", ""},
		{"7", "{$schema: {type: integer, maximum: 6}}", "does not fit the schema"},
	} {
		tests := fmt.Sprintf("tests: [{name: x, inputs: {v: %s}, expect: {outputs: {v: %s}}}]", c.value, c.expect)
		f := runTests(t, made, tests)
		got := reportText(&f)
		switch {
		case c.says == "" && f.Status != flowtest.Passed:
			t.Errorf("%s is not like %s:\n%s", c.value, c.expect, got)
		case c.says != "" && (f.Status != flowtest.Failed || !strings.Contains(got, c.says)):
			t.Errorf("%s is not to be like %s, as %q says; it is %s:\n%s", c.value, c.expect, c.says, f.Status, got)
		}
	}
}

func TestInvalidMatcherIsRefused(t *testing.T) {
	t.Parallel()
	for expect, says := range map[string]string{
		"{$min: a}":            `$min must be a number; got "a"`,
		"{$within: 1}":         "$within stands beside $approx",
		"{$any: words}":        `$any must be true, or one of text, number, bool, list, object; got "words"`,
		"{$oneOf: a}":          "$oneOf must be a list",
		"{$subset: a}":         "$subset must be an object or a list",
		"{$schema: {type: 5}}": "schema",
		"{a: {$eq: 1}}":        "there is no matcher $eq",
		"{$absent: 1}":         "$absent must be true or false",
		"{$startsWith: [a]}":   "$startsWith must be a text",
		"{$each: {$mim: 1}}":   "there is no matcher $mim",
	} {
		fails(t, flowtest.Invalid, made, fmt.Sprintf("tests: [{name: x, expect: {outputs: {v: %s}}}]", expect), says)
	}
}

func TestDifferentTextsAreShownAsDiff(t *testing.T) {
	t.Parallel()
	fails(t, flowtest.Failed, made, `
tests:
  - name: a
    inputs: {v: "1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n11\n"}
    expect: {outputs: {v: "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n"}}
`, `f.test.yaml:5:27: outputs.v: the texts differ at line 10, character 1
    ... 6 more lines that are the same
    7
    8
    9
  - 10
  + x
    11
    `)
}
