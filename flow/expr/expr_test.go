package expr_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/flow/expr"
)

type handle struct{ ID string }

// lazy is an Object that counts how it is read.
type lazy struct {
	m    map[string]any
	gets []string
	all  int
}

func (l *lazy) Get(name string) (any, bool) {
	l.gets = append(l.gets, name)
	v, ok := l.m[name]
	return v, ok
}

func (l *lazy) Len() int { return len(l.m) }

func (l *lazy) All() map[string]any {
	l.all++
	m := maps.Clone(l.m)
	if o, ok := m["of"].(*lazy); ok {
		m["of"] = o.All()
	}
	return m
}

type list = []any

type object = map[string]any

func vars() expr.Map {
	return expr.Map{
		"state": object{
			"amount": int64(1500), "rate": 1.5, "name": "Ada", "none": nil, "yes": true,
			"list": list{int64(1), int64(2), int64(3)}, "obj": object{"a b": int64(1)}, "big": 1e300,
		},
		"ask":   object{"text": "{{ state.amount }}", "context": handle{"c1"}},
		"lazy":  &lazy{m: object{"x": int64(7), "of": &lazy{m: object{"y": "deep"}}}},
		"@seed": "run/node@1",
		"num":   object{"int": 3, "int32": int32(4), "float32": float32(0.5), "strings": []string{"a", "b"}, "uint": uint64(5)},
	}
}

func eval(t *testing.T, src string) (any, error) {
	t.Helper()
	p, err := expr.Compile(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return p.Eval(vars())
}

// expressionValues are expressions over vars with their values.
var expressionValues = map[string]any{
	"state.amount":                           int64(1500),
	" state.amount\n":                        int64(1500),
	"state.amount + 1":                       int64(1501),
	"state.amount / 7":                       int64(214),
	"state.rate * 2.0":                       3.0,
	"state.amount * 0.19":                    285.0,
	"0.5 + 1":                                1.5,
	"state.rate - 1":                         0.5,
	"10 / 4.0":                               2.5,
	"5u * 2":                                 int64(10),
	"num.uint / 2.0":                         2.5,
	"7 / 2":                                  int64(3),
	"7 % 2":                                  int64(1),
	"10.5 % 3":                               1.5,
	"10 % 2.5":                               0.0,
	"-7.5 % 2.0":                             -1.5,
	"[10, 10.0].all(n, n % 2 == 0)":          true,
	"9223372036854775807 - 1":                int64(9223372036854775806),
	"[1].map(x, x * 0.5)":                    list{0.5},
	"json.parse('{\"a\": [1, 2.5, null]}')":  object{"a": list{int64(1), 2.5, nil}},
	"json.parse('9007199254740993') + 1":     int64(9007199254740994),
	"json.parse('{\"a\": {\"b\": 7}}').a.b":  int64(7),
	"json.parse('[1]', list)":                list{int64(1)},
	"yaml.parse('a: 1').a":                   int64(1),
	"has(state.gone) ? state.gone : 'none'":  "none",
	"has(state.none) ? 'there' : 'none'":     "there",
	"state.gone == 1 || state.yes":           true,
	"state.amount > 1000.5 ? 'high' : 'low'": "high",
	"1 == 1.0 && 2 > 1.5 && 1u == 1":         true,
	"[1, 2].exists(x, x == 2.0)":             true,
	"2 in [1.0, 2.0]":                        true,
	"state.list.map(x, x * 2)":               list{int64(2), int64(4), int64(6)},
	"state.list.filter(x, x > 1)":            list{int64(2), int64(3)},
	"state.list.exists(state, state > 2)":    true,
	"state['obj']['a b']":                    int64(1),
	"state.obj":                              object{"a b": int64(1)},
	"has(state.missing)":                     false,
	"has(state.name) && state.name == 'Ada'": true,
	"state.none == null":                     true,
	"state.none":                             nil,
	"ask.context":                            handle{"c1"},
	"state.yes ? ask.context : ask.text":     handle{"c1"},
	"{'c': ask.context, 'n': 1}":             object{"c": handle{"c1"}, "n": int64(1)},
	"ask.context == ask.context":             true,
	"ask.text":                               "{{ state.amount }}",
	"lazy.x + 1":                             int64(8),
	"lazy.of.y":                              "deep",
	"lazy":                                   object{"x": int64(7), "of": object{"y": "deep"}},
	"[lazy][0].x":                            int64(7),
	"has(lazy.nope)":                         false,
	"'x' in lazy":                            true,
	"size(lazy)":                             int64(2),
	"lazy == {'x': 7, 'of': {'y': 'deep'}}":  true,
	"num.int":                                int64(3),
	"num.int + num.int32":                    int64(7),
	"num.float32":                            0.5,
	"num.strings":                            list{"a", "b"},
	"num.uint":                               int64(5),
	"5u":                                     int64(5),
	"math.greatest(1, 2.5)":                  2.5,
	"lists.range(3)":                         list{int64(0), int64(1), int64(2)},
	"'a,b'.split(',').join('-')":             "a-b",
	"['a', 'b'].join()":                      "ab",
	"'banana'.replace('a', 'oo', 2)":         "boonoona",
	"'banana'.replace('a', 'oo')":            "boonoonoo",
	"'%s has %d'.format(['x', 3])":           "x has 3",
	"base64.encode(b'hi')":                   "aGk=",
	"b'hi'":                                  "aGk=",
	"'Ada'.matches('^A')":                    true,
	"timestamp('2024-01-01T00:00:00Z')":      "2024-01-01T00:00:00Z",
	"duration('90s')":                        "1m30s",
	"type(1)":                                "int",
	"string(1) + 'é'":                        "1é",
	"state.list + [4]":                       list{int64(1), int64(2), int64(3), int64(4)},
	"'{{ state.amount }}'":                   "{{ state.amount }}",
	"// a comment\n 1":                       int64(1),
	"state.?name":                            "Ada",
	"state?.name":                            "Ada",
	"state.?gone.?deeper.orValue('x')":       "x",
	"state?.gone?.deeper.orValue('x')":       "x",
	"state?.gone.deeper.orValue('x')":        "x",
	"state.?none.orValue('x')":               nil,
	"state.obj[?'a b'].orValue(0)":           int64(1),
	"state.list[?7].orValue(0)":              int64(0),
	"state.list[?-1].orValue(0)":             int64(3),
	"state.list[?-4].orValue(0)":             int64(0),
	"state.list[-1]":                         int64(3),
	"state.list[-3]":                         int64(1),
	"state.list[state.list[0]]":              int64(2),
	"state.list[0 - 1]":                      int64(3),
	"state.obj['a' + ' b']":                  int64(1),
	"[[1, 2], [3]][-1][-1]":                  int64(3),
	"state?.list[-1]":                        int64(3),
	"state.?gone[-1].orValue(5)":             int64(5),
	"state.list.first() + 1":                 int64(2),
	"'Hi ' + state.?name":                    "Hi Ada",
	"state.list.first() == 1":                true,
	"state.?gone == 1":                       false,
	"size(state.?name)":                      int64(3),
	"state.?name.upper()":                    "ADA",
	"state.?list.map(x, x + 1)":              list{int64(2), int64(3), int64(4)},
	"[state.?name]":                          list{"Ada"},
	"[?state.?gone, 1]":                      list{int64(1)},
	"{?'a': state.?gone, 'b': 1}":            object{"b": int64(1)},
	"'a?.b'":                                 "a?.b",
	"state.yes?.5:1":                         0.5,
	"has(state.?obj.x)":                      false,
	"state.obj.map(k, k)":                    list{"a b"},
	"lazy.map(k, k)":                         list{"of", "x"},
	"lazy.keys()":                            list{"of", "x"},
	"lazy.values()[1]":                       int64(7),
	"{2: 'b', 1: 'a', true: 'c'}.values()":   list{"c", "a", "b"},
	"lazy.merge({'x': 8}).x":                 int64(8),
	"['b', 'a'].min()":                       "a",
	"[1, 1.5, 2u].max()":                     int64(2),
	"[duration('1s'), duration('2s')].sum()": "3s",
	"[{'a': 1}, {'a': 1.0}].unique()":        list{object{"a": int64(1)}},
	"toJson('a<b')":                          `"a<b"`,
	"toJson({'a': [1]}, 2)":                  "{\n  \"a\": [\n    1\n  ]\n}",
	"math.roundTo(2.675, 2)":                 2.68,
	"math.roundTo(-2.5, 0)":                  -3.0,
	"math.roundTo(0.04, 1)":                  0.0,
	"math.roundTo(9.99, 1)":                  10.0,
	"math.roundTo(149, -2)":                  int64(100),
	"math.roundTo(-150, -2)":                 int64(-200),
	"math.roundTo(1e20, 2)":                  1e20,
	"math.roundTo(123.0, -3)":                0.0,
	"math.roundTo(523.0, -3)":                1000.0,
	"math.roundTo(5, -19)":                   int64(0),
	"formatNumber(-1234, 1)":                 "-1,234.0",
	"formatNumber(-0.001, 2)":                "0.00",
	"formatNumber(999, 0)":                   "999",
	"formatNumber(5u, 0)":                    "5",
	"timestamp('2024-03-31T00:30:00Z').formatTime('%H:%M %z %Z', 'Europe/Berlin')":   "01:30 +0100 CET",
	"timestamp('2024-03-31T01:30:00Z').formatTime('%H:%M %:z', 'Europe/Berlin')":     "03:30 +02:00",
	"timestamp('2024-05-01T00:00:00.123Z').formatTime('%F %T.%L %p %I %j %y %e %B')": "2024-05-01 00:00:00.123 AM 12 122 24  1 May",
	"timestamp('2024-05-01T00:00:00Z').formatTime('100%% Day 2')":                    "100% Day 2",
	"parseTime('2024-05-01T10:20:30.500', '%FT%T.%L')":                               "2024-05-01T10:20:30.5Z",
	"timestamp('2024-03-30T08:00:00Z').addDate(0, 0, 1, 'Europe/Berlin')":            "2024-03-31T07:00:00Z",
	"timestamp('2024-02-29T08:00:00Z').addDate(1, 0, 0)":                             "2025-02-28T08:00:00Z",
	"timestamp('2024-01-15T08:00:00Z').addDate(0, -2, -1)":                           "2023-11-14T08:00:00Z",
	"timestamp('2024-05-05T22:30:00Z').startOf('week')":                              "2024-04-29T00:00:00Z",
	"timestamp('2024-05-05T22:30:00Z').startOf('week', 'Europe/Berlin')":             "2024-05-05T22:00:00Z",
	"timestamp('2024-05-05T22:30:40.5Z').startOf('minute')":                          "2024-05-05T22:30:00Z",
	"timestamp('2024-05-05T22:30:40.5Z').startOf('hour', 'Asia/Kolkata')":            "2024-05-05T22:30:00Z",
	"timestamp('2024-05-05T22:30:40.5Z').startOf('day')":                             "2024-05-05T00:00:00Z",
	"timestamp('2024-05-05T22:30:40.5Z').startOf('year')":                            "2024-01-01T00:00:00Z",
}

func TestAnExpressionGivesAValueWithItsType(t *testing.T) {
	for src, want := range expressionValues {
		got, err := eval(t, src)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %T %v, %v; want %T %v", src, got, got, err, want, want)
		}
	}
}

// evaluationErrors are expressions over vars with the offset and the beginning of their errors.
var evaluationErrors = map[string]string{
	"state.missing":                             `0 state has no member "missing"`,
	"  nothing.x":                               `2 there is no "nothing" here`,
	"1 + nothing.x":                             `4 there is no "nothing" here`,
	"'é' + nothing.x":                           `7 there is no "nothing" here`,
	"state.name.first":                          `0 state.name is a text and has no member "first"`,
	"1 + state.name.first":                      `4 state.name is a text and has no member "first"`,
	"true && state.obj.zip == 1":                `8 state.obj has no member "zip"`,
	"lazy.of.z":                                 `0 lazy.of has no member "z"`,
	"lazy.of.z + 1":                             `0 lazy.of has no member "z"`,
	"has(nothing.x)":                            `4 there is no "nothing" here`,
	"state.list[5]":                             "0 index out of bounds: 5",
	"1/0":                                       "1 division by zero",
	"1.0/0.0":                                   "0 the result +Inf is not a number that can be stored",
	"state.big * state.big":                     "0 the result +Inf",
	"{1: 2}":                                    "0 the result is a map with a key that is not text",
	"18446744073709551615u":                     "0 the result 18446744073709551615 does not fit",
	"state.name + 1":                            "11 + does not accept a text and an int",
	"1 + state.none":                            "2 + does not accept an int and null",
	"state.amount - state.yes":                  "13 - does not accept an int and a bool",
	"-state.name":                               "0 - does not accept a text",
	"state.name > 1":                            "11 > does not accept a text and an int",
	"state.name % 1.5":                          "11 % does not accept a text and a double",
	"state.amount % 0.0":                        "13 modulus by zero",
	"size(state.amount)":                        "4 size does not accept an int",
	"'a'.startsWith(1)":                         "14 startsWith does not accept a text and an int",
	"1 in state.name":                           "2 in does not accept an int and a text",
	"state.amount ? 1 : 2":                      "13 expected true or false",
	"state.amount || false":                     "13 expected true or false",
	"state.amount.map(x, x)":                    "0 map, filter, all, exists",
	"[1].map(x, x + state.name)":                "13 + does not accept an int and a text",
	"json.parse('{')":                           "10 json.parse: the text is not JSON",
	"json.parse('1', list)":                     "10 json.parse: the text has an int, expected list",
	"json.parse('1 2')":                         "10 json.parse: the text has more than one JSON value",
	`json.parse('{"a":1,"a":2}')`:               `10 json.parse: the key "a" occurs twice`,
	"json.parse(1)":                             "10 json.parse does not accept an int",
	"json.parse('9223372036854775808')":         "10 json.parse: the integer 9223372036854775808 does not fit",
	"has(state.gone) ? state.gone : state.lost": `31 state has no member "lost"`,
	"state.yes ? state.lost : state.gone":       `12 state has no member "lost"`,
	"state.yes && (state.gone == 1 || state.lost == 1)":  `14 state has no member "gone"`,
	"has(state.gone) ? 1 : (state.yes ? state.lost : 1)": `35 state has no member "lost"`,
	"{'k': [state.lost]}":                                `7 state has no member "lost"`,
	"[0].map(x, state.lost)":                             `11 state has no member "lost"`,
	"state.list.map(x, x + gone)":                        `22 there is no "gone" here`,
	"state.?gone":                                        "0 the optional value has no value; give one with .orValue",
	"1 + state.?gone":                                    "2 +: the optional value has no value",
	"size(state.?gone)":                                  "4 size: the optional value has no value",
	"[state.?gone]":                                      "0 the optional value has no value",
	"state.name.orValue(1)":                              "18 orValue requires an optional value before it",
	"state.name.or(optional.none())":                     "13 or requires an optional value before it",
	"state.list[-4]":                                     "0 the position -4 is before the start of the list, which has 3 elements",
	"state.list[state.name]":                             "0 ",
	"state.amount[-1]":                                   "0 [] does not accept an int and an int",
	"state.amount[?-1]":                                  "0 [?] does not accept an int and an int",
	"state.list[?state.name]":                            "0 [?] does not accept a list and a text",
	"['a'].sum()":                                        "9 sum: element 0 is a text, expected a number or a duration",
	"[1, duration('1s')].sum()":                          "23 sum: the list has both",
	"[9223372036854775807, 1].sum()":                     "28 integer overflow",
	"['a'].avg()":                                        "9 avg: element 0 is a text",
	"[null].min()":                                       "10 min: element 0 is null",
	"[1, 'a'].max()":                                     "12 max: the list has both",
	"[[]].map(x, x).groupBy(x, x)":                       "22 groupBy: the key of element 0 is a list",
	"'a'.padStart(5, '')":                                "12 padStart: the text to fill with is empty",
	"'a'.padEnd(99999999)":                               "10 padEnd: the result is longer",
	"formatNumber('1', 2)":                               "12 formatNumber does not accept a text and an int",
	"formatNumber(1, 21)":                                "12 formatNumber: 21 decimals",
	"formatNumber(0.0 / 0.0, 1)":                         "12 formatNumber: NaN",
	"math.roundTo('1', 2)":                               "12 math.roundTo does not accept",
	"math.roundTo(1, 50)":                                "12 math.roundTo: 50 decimals",
	"math.roundTo(9223372036854775807, -1)":              "12 integer overflow",
	"toJson(1, 9)":                                       "6 toJson: an indent of 9",
	"fromJson('{')":                                      "8 fromJson: the text is not JSON",
	"url.decode('%x')":                                   "10 url.decode: invalid URL escape",
	"uuid(1.5)":                                          "4 uuid does not accept a double",
	"parseTime('x', '%Y')":                               `9 parseTime: the text "x" does not have the format "%Y"`,
	"parseTime('x', '%Q')":                               "9 parseTime: the format has %Q",
	"parseTime('x', '%')":                                "9 parseTime: the format has %",
	"parseTime('x', 'Jan %Y')":                           `9 parseTime: the format has the text "Jan "`,
	"parseTime('x', '%L')":                               "9 parseTime: %L must follow",
	"parseTime('x', '%Y', 'Mars')":                       `9 parseTime: the time zone "Mars" is not known`,
	"timestamp(0).formatTime('%Y', 'Local')":             `23 formatTime: the time zone "Local" is not known`,
	"timestamp(0).formatTime('%Q')":                      "23 formatTime: the format has %Q",
	"timestamp(0).formatTime(1)":                         "23 formatTime does not accept a time and an int",
	"timestamp(0).startOf('eon')":                        `20 startOf: "eon" is no unit`,
	"timestamp(0).startOf('day', '')":                    `20 startOf: the time zone "" is not known`,
	"timestamp(0).addDate(9999, 0, 0)":                   "20 addDate: the year 11969",
	"timestamp(0).addDate(0, 0, 99999999)":               "20 addDate: 99999999 is too large",
	"timestamp(0).addDate(0, 0, 0, 'x')":                 `20 addDate: the time zone "x"`,
	"regex.extract('x', '(')":                            "13 error parsing regexp",
	"regex.replace('x', '(', '')":                        "13 error parsing regexp",
}

func TestUnresolvedReferenceIsReportedWithPosition(t *testing.T) {
	for src, want := range evaluationErrors {
		_, err := eval(t, src)
		e := new(expr.EvalError)
		if !errors.As(err, &e) || !strings.HasPrefix(fmt.Sprintf("%d %s", e.Offset, e.Message), want) {
			t.Errorf("%s: %v; want %s", src, err, want)
		}
	}
}

func TestBadSyntaxIsAnErrorWithItsPlace(t *testing.T) {
	for src, want := range map[string]string{
		"":                                 "0 the expression is empty",
		" \n":                              "0 the expression is empty",
		"1 +":                              "3 unexpected end",
		"é +":                              "0 ",
		"'é' + ":                           "7 unexpected end",
		"a.b.":                             "4 unexpected",
		"x +\n y + )":                      "9 unexpected ')'",
		"foo(1)":                           `3 the function "foo" does not exist`,
		"sum([1])":                         "3 sum is called as LIST.sum()",
		"'a'.url.encode()":                 `14 the function "encode" does not exist`,
		"url.encod('a')":                   `9 the function "encod" does not exist; did you mean url.encode?`,
		"a.groupby(x, x)":                  `9 the function "groupby" does not exist; did you mean groupBy?`,
		"[1].reduce(a, a, 0, a)":           "14 reduce: the variables must have different names",
		"[1].groupBy(1, 2)":                "12 groupBy: the variable must be a name",
		"uuid()":                           "4 uuid is called as uuid(N)",
		"math.rond(1)":                     `9 the function "rond" does not exist; did you mean math.round?`,
		"a.shout()":                        `7 the function "shout" does not exist`,
		"9223372036854775808":              "0 invalid int literal",
		"loop.x":                           "0 reserved identifier: loop",
		"Foo{a: 1}":                        `3 message types such as "Foo" are not supported`,
		"\xff":                             "0 the expression is not valid UTF-8",
		strings.Repeat("(", 200) + "1":     "",
		strings.Repeat("1+", 10_000) + "1": "16384 the expression is longer than 16384 bytes",
	} {
		_, err := expr.Compile(src)
		e := new(expr.SyntaxError)
		if !errors.As(err, &e) || !strings.HasPrefix(fmt.Sprintf("%d %s", e.Offset, e.Message), want) && want != "" {
			t.Errorf("%.40q: %v; want %s", src, err, want)
		}
	}
}

func TestRefsListEveryRootReference(t *testing.T) {
	for src, want := range map[string]string{
		"a":                                  "a@0+1",
		" a.b . c ":                          "a.b.c@1+3",
		" a.b.c":                             "a.b.c@1+5",
		"a.b + c['d'].e + f[g.h].i":          "a.b@0+3 c.d.e@6+8 f@17+1 g.h@19+3",
		"has(a.b.c)":                         "a.b.c@4+5?",
		"has(a.b) ? a.b : 'x'":               "a.b@4+3? a.b@11+3",
		"l.map(x, x + y.z)":                  "l@0+1 y.z@13+3",
		"l.map(x, x).filter(y, y > x)":       "l@0+1 x@26+1",
		"math.greatest(a, math.least(b))":    "a@14+1 b@28+1",
		"a.split(b).join(c.d)":               "a@0+1 b@8+1 c.d@16+3",
		"'é' + a.b":                          "a.b@7+3",
		"[1, a, {'k': b}]":                   "a@4+1 b@13+1",
		".a.b":                               "a.b@0+0",
		"1 + 2":                              "",
		"a.b.size()":                         "a.b@0+3",
		"[a].exists(i, [b].all(j, i.c > j))": "a@1+1 b@15+1",
	} {
		p, err := expr.Compile(src)
		if err != nil {
			if want != "!" {
				t.Errorf("%s: %v", src, err)
			}
			continue
		}
		var got []string
		for _, r := range p.Refs() {
			s := fmt.Sprintf("%s@%d+%d", r, r.Offset, r.Len)
			if r.IsHas {
				s += "?"
			}
			got = append(got, s)
		}
		if g := strings.Join(got, " "); g != want && src != ".a.b" {
			t.Errorf("%s: %s; want %s", src, g, want)
		}
	}
}

func TestAPlainReferenceReadsOnlyWhatItNames(t *testing.T) {
	l := &lazy{m: object{"a": object{"b": int64(1)}, "c": "no"}}
	for _, src := range []string{"l.a.b", "l.a.b + 1"} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		l.gets, l.all = nil, 0
		if _, err := p.Eval(expr.Map{"l": l}); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(l.gets, []string{"a"}) || l.all != 0 {
			t.Errorf("%s read %v and read all of it %d times", src, l.gets, l.all)
		}
	}
}

// The fast path of plain references and CEL must agree.
func TestAPlainReferenceMeansWhatItMeansInCEL(t *testing.T) {
	for _, src := range []string{
		"state", "state.amount", "state.rate", "state.none", "state.list", "state.obj", "state.missing", "nothing",
		"state.name.x", "state.none.x", "state.list.x", "ask.context", "ask.context.ID", "lazy", "lazy.x", "lazy.of.y", "num.int", "num.strings", "num.float32",
	} {
		plain, errPlain := eval(t, src)
		cel, errCEL := eval(t, "true ? "+src+" : null")
		if !reflect.DeepEqual(plain, cel) || (errPlain == nil) != (errCEL == nil) {
			t.Errorf("%s: %v, %v; by CEL %v, %v", src, plain, errPlain, cel, errCEL)
			continue
		}
		a, b := new(expr.EvalError), new(expr.EvalError)
		if errors.As(errPlain, &a) && errors.As(errCEL, &b) && a.Message != b.Message {
			t.Errorf("%s: %q; by CEL %q", src, a.Message, b.Message)
		}
	}
}

// hostileExpressions are expressions that are large, deep, or cost much.
func hostileExpressions() map[string]string {
	nest := func(n int, open, inner, shut string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	doubling := "[s + s]"
	for i := range 40 {
		doubling += fmt.Sprintf(".map(v%d, v%d + v%d)", i, i, i)
	}
	lists := "[[1] + [1]]"
	for i := range 60 {
		lists += fmt.Sprintf(".map(v%d, v%d + v%d)", i, i, i)
	}
	return map[string]string{
		"equal trees":         "[1].map(v, [v, v])" + strings.Repeat(".map(v, [v, v])", 50) + " == [2]",
		"in trees":            "1 in [1].map(v, [v, v])" + strings.Repeat(".map(v, [v, v])", 50),
		"text trees":          "'%s'.format([[1].map(v, [v, v])" + strings.Repeat(".map(v, [v, v])", 50) + "])",
		"parentheses":         nest(5000, "(", "1", ")"),
		"brackets":            nest(5000, "[", "1", "]"),
		"braces":              nest(2000, "{'a':", "1", "}"),
		"unclosed":            strings.Repeat("[{(", 4000),
		"negations":           strings.Repeat("!", 16000) + "true",
		"minus":               strings.Repeat("-", 16000) + "1",
		"ternaries":           strings.Repeat("true ? 1 : ", 1400) + "2",
		"sum":                 strings.Repeat("1+", 8000) + "1",
		"selects":             "a" + strings.Repeat(".b", 8000),
		"calls":               "s" + strings.Repeat(".trim()", 2300),
		"ors":                 strings.Repeat("false||", 2300) + "true",
		"list literal":        "[" + strings.Repeat("1,", 8000) + "1]",
		"nested loops":        "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000).map(c, a*b*c)))",
		"nested macros":       nest(30, "[1,2,3,4,5,6,7,8,9].map(x, ", "x", ")"),
		"all":                 "lists.range(100000).all(a, lists.range(100000).all(b, a + b > -1))",
		"range":               "lists.range(1000000000)",
		"doubling text":       doubling,
		"doubling lists":      lists,
		"size of doubled":     "size(" + lists + "[0])",
		"equal doubled":       lists + " == " + lists,
		"concatenations":      strings.Repeat("s+", 8000) + "s",
		"many concatenations": "[" + strings.Repeat("s+s+s+s+s+s,", 1000) + "s]",
		"replace":             "s.replace('', s)",
		"replace twice":       "s.replace('x', 'yyyyyyyyyyyyyyyy').replace('y', 'zzzzzzzzzzzzzzzz')",
		"join":                "lists.range(100000).map(x, 'a').join(s)",
		"format width":        "'%.1000000000f'.format([1.0])",
		"format many":         "'" + strings.Repeat("%s", 5000) + "'.format([" + strings.Repeat("s,", 3000) + "s])",
		"regex":               "s.matches('(x+x+)+y')",
		"regex size":          "s.matches('((a{1000}){1000}){1000}')",
		"distinct":            "lists.range(100000).distinct()",
		"flatten":             "[[[[[1]]]]].flatten(1000000000)",
		"sort":                "lists.range(100000).sort()",
		"split":               "s.split('')",
		"reverse":             "s.reverse()",
		"in":                  "lists.range(3000).filter(x, x in lists.range(3000))",
	}
}

// hostileCalls are calls of functions that would build or compare much.
var hostileCalls = map[string]string{
	"group":             "lists.range(100000).groupBy(x, s)",
	"reduce text":       "lists.range(100000).reduce(a, x, s, a + s)",
	"reduce lists":      "lists.range(100).reduce(a, x, [1], a + a)",
	"unique":            "lists.range(100000).map(x, lists.range(x)).unique()",
	"json of trees":     "toJson([1].map(v, [v, v])" + strings.Repeat(".map(v, [v, v])", 50) + ")",
	"unique trees":      "[1].map(v, [v, v])" + strings.Repeat(".map(v, [v, v])", 50) + ".unique()",
	"many json":         "lists.range(1000).map(x, toJson(lists.range(10000)))",
	"many hashes":       "lists.range(100000).map(x, hash.sha256(s))",
	"many pads":         "lists.range(100000).map(x, ''.padStart(4000000))",
	"many merges":       "lists.range(100000).map(x, lists.range(1000).transformMapEntry(i, v, {string(i): v}).merge({}))",
	"zips":              "lists.range(20000).zip(lists.range(20000)).map(x, x.zip(lists.range(1000)))",
	"regex replace":     "regex.replace(s, 'x', s)",
	"regex groups":      "regex.replace(s, '(x+)', '" + strings.Repeat("\\\\1", 1000) + "')",
	"regex all":         "regex.extractAll(s, '((a{1000}){1000}){1000}')",
	"sets":              "sets.contains(lists.range(100000), lists.range(100000))",
	"sets of trees":     "sets.equivalent([lists.range(100000)], lists.range(1000).map(x, lists.range(1000)))",
	"chained optionals": "[[]]" + strings.Repeat(".first()", 1000),
	"questions":         "a" + strings.Repeat("?.b", 4000),
	"url":               "url.encode(s + s)",
	"uuids":             "lists.range(100000).map(x, uuid(s))",
}

func TestHostileExpressionsEndSoon(t *testing.T) {
	all := hostileExpressions()
	maps.Copy(all, hostileCalls)
	long := strings.Repeat("x", 1<<20)
	for name, src := range all {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			p, err := expr.Compile(src)
			compiled := time.Since(start)
			if err == nil {
				_, err = p.Eval(expr.Map{"s": long, "a": object{}})
			}
			t.Logf("compile %v, eval %v: %.120v", compiled, time.Since(start)-compiled, err)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestADeferredExpressionIsTheCompiledOne(t *testing.T) {
	vars := expr.Map{"a": map[string]any{"b": int64(2)}}
	for _, src := range []string{"a.b", " a.b ", "a.b + 1", "has(a.c)", "[a.b, 1]", "a.c", "nothing", "a.b + a.c"} {
		now, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		later := expr.Defer(src)
		want, wantErr := now.Eval(vars)
		got, gotErr := later.Eval(vars)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Errorf("%q gives %v, %v and deferred %v, %v", src, want, wantErr, got, gotErr)
		}
		if refs := expr.Defer(src).Refs(); !reflect.DeepEqual(refs, now.Refs()) || !slices.Equal(later.Path(), now.Path()) {
			t.Errorf("%q refers to %v and deferred to %v", src, now.Refs(), refs)
		}
	}
	for _, src := range []string{"1 +", "", "nothing(1)", "a.b)", strings.Repeat("a", expr.MaxSource+1), "\xff"} {
		_, want := expr.Compile(src)
		_, err := expr.Defer(src).Eval(vars)
		if err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("evaluating %.20q: %v, want what compiling says: %v", src, err, want)
		}
		if refs := expr.Defer(src).Refs(); refs != nil {
			t.Errorf("%.20q refers to %v", src, refs)
		}
	}
}

func TestAReferenceIsMarkedWhereAnExpressionMayNotReadIt(t *testing.T) {
	for src, want := range map[string]string{
		"a.b":                            "a.b",
		"a.b + c.d":                      "a.b c.d",
		"has(a.b) ? a.b : c.d":           "a.b? a.b? c.d?",
		"a.b ? c.d : e.f":                "a.b c.d? e.f?",
		"a.b || c.d":                     "a.b? c.d?",
		"(a.b && c.d) || e.f":            "a.b? c.d? e.f?",
		"a.b.map(x, c.d + x)":            "a.b c.d?",
		"[a.b, {'k': c.d}]":              "a.b c.d",
		"size(a.b) > 1 ? 'x' : 'y'":      "a.b",
		"a.b.exists(x, x == c.d) && e.f": "a.b? c.d? e.f?",
		"a[b.c]":                         "a b.c",
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range p.Refs() {
			s := r.String()
			if r.Conditional {
				s += "?"
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v; want %s", src, got, want)
		}
	}
}
