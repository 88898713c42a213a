package expr_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

// What people write who know JavaScript, Python, n8n or Jinja is answered with what to write.
func TestExpressionsOfOtherLanguagesAreAnsweredWithHowToWriteThem(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"a.length()":                   "write X.size()",
		"len(a)":                       "write size(X)",
		"a.toLowerCase()":              "write TEXT.lowerAscii()",
		"a.find(x, x > 5)":             "write LIST.filter(x, CONDITION).first()",
		"a.flatMap(x, x.tags)":         "write LIST.map(x, EXPR).flatten()",
		"a.includes('x')":              "ELEMENT in LIST",
		"parseInt(a)":                  "write int(X)",
		"Number(a)":                    "write double(X)",
		"JSON.parse(a)":                "write fromJson(TEXT)",
		"JSON.stringify(a)":            "write toJson(X)",
		"a.match('x')":                 "regex.extract(TEXT, REGEX)",
		"a.toFixed(2)":                 "write '%.2f'.format([X])",
		"a.round(2)":                   "write math.round(X)",
		"and(a, b)":                    "write A && B",
		"a.isEmpty()":                  "write X.size() == 0",
		"a ?? 'none'":                  "?? is written A.?b.orValue(DEFAULT)",
		"a === b":                      "=== is written ==",
		"a !== b":                      "!== is written !=",
		"a.map(i => i.price)":          "=> is written LIST.map(x, EXPR)",
		"a.reduce((s, b) => s + b, 0)": "=> is written",
		"a = 'b'":                      "= is written ==, to compare",
		"a | upper":                    "| is written FUNCTION(X)",
		"a and b":                      "and is written &&",
		"not a":                        "not is written !",
		"$json.a":                      "$json is written inputs, state or run",
		"`a ${b}`":                     "is written 'TEXT ' + EXPR",
		"if(a, b, c)":                  "if is written CONDITION ? A : B",
		"new Date()":                   "new is written timestamp(TEXT), or now",
	} {
		_, err := expr.Compile(src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", src, err, want)
		}
	}
	// What stands in a text is no operator.
	for _, src := range []string{"'a === b' +", "'a | b' +", "a || b +", "a >= b +", `"it's = $5" +`, "a.cannot +", "renew + ", "state.new +", "a.if (b +"} {
		_, err := expr.Compile(src)
		if err == nil || strings.Contains(err.Error(), "is written") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestSortingComparesNumbersByValueAndKeepsEqualElementsInOrder(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"[6.5, 4, 5.0, -1].sort()": "[-1,4,5,6.5]",
		"[true, false].sort()":     "[false,true]",
		"['b', 'a'].sort()":        `["a","b"]`,
		"[].sort()":                "[]",
		"[[2, 'x'], [1.5, 'y'], [2.0, 'z'], [2, 'w']].sortBy(e, e[0]).map(e, e[1])": `["y","x","z","w"]`,
		"lists.range(40).map(i, [i % 2, i]).sortBy(e, e[0]).map(e, e[1])[19]":       "38",
	} {
		if got := evaluated(t, src); got != want {
			t.Errorf("%s is %s, expected %s", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"[1, 'a'].sort()":                       "element 0 is sorted by an int, and element 1 by a text",
		"[1, null].sort()":                      "element 1 cannot be sorted: it is sorted by null",
		"[{'n': 1}, {'n': [2]}].sortBy(x, x.n)": "element 1 cannot be sorted: it is sorted by a list",
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Eval(expr.Map{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", src, err, want)
		}
	}
}

// evaluated returns the value of an expression as JSON.
func evaluated(t *testing.T, src string) string {
	t.Helper()
	p, err := expr.Compile("toJson(" + src + ")")
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(expr.Map{})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	s, _ := v.(string)
	return s
}
