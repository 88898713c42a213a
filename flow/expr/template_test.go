package expr_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

func TestATemplateKeepsTheTypeOfASingleExpressionAndRendersTheRest(t *testing.T) {
	for _, c := range []struct{ v, want any }{
		{"hello", "hello"},
		{"", ""},
		{"a }} b", "a }} b"},
		{int64(3), int64(3)},
		{"{{ state.amount }}", int64(1500)},
		{"{{state.list}}", list{int64(1), int64(2), int64(3)}},
		{" {{ state.amount }}", " 1500"},
		{"{{ state.amount }}{{ state.rate }}", "15001.5"},
		{"{{ state.name }}: {{ state.list }}, {{ state.none }}, {{ state.yes }}", "Ada: [1,2,3], null, true"},
		{"x{{ {'a': {'b': '<}}>'}} }}y", `x{"a":{"b":"<}}>"}}y`},
		{"literal {{ '{{' }} and {{ \"}}\" }}", "literal {{ and }}"},
		{`{{ r'\' + "\"}}" }}!`, `\"}}!`},
		{"{{ '''a'}}''' }}!", "a'}}!"},
		{"{{ ask.text }}", "{{ state.amount }}"},
		{"once {{ ask.text }}", "once {{ state.amount }}"},
		{"{{ ask.context }}", handle{"c1"}},
		{"in {{ ask.context }}", `in {"ID":"c1"}`},
		{list{"{{ state.amount }}", "n", object{"k": "n={{ state.amount }}", "{{ state.amount }}": int64(1)}}, list{int64(1500), "n", object{"k": "n=1500", "{{ state.amount }}": int64(1)}}},
	} {
		tp, err := expr.ParseTemplate(c.v)
		if err != nil {
			t.Errorf("%v: %v", c.v, err)
			continue
		}
		got, err := tp.Eval(vars())
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v = %#v, %v; want %#v", c.v, got, err, c.want)
		}
		if lit, ok := tp.Literal(); ok != (len(tp.Refs()) == 0 && !strings.Contains(fmt.Sprint(c.v), "{{")) || ok && !reflect.DeepEqual(lit, c.v) {
			t.Errorf("%v: Literal is %v, %v", c.v, lit, ok)
		}
	}
}

func TestTextRendersAnyTemplate(t *testing.T) {
	for v, want := range map[string]string{"{{ state.amount }}": "1500", "{{ state.obj }}": `{"a b":1}`, "a<b": "a<b", "{{ state.name }}": "Ada"} {
		tp, err := expr.ParseTemplate(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tp.Text(vars()); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", v, got, err, want)
		}
	}
}

func TestPlacesInATemplateCountFromItsStart(t *testing.T) {
	tp, err := expr.ParseTemplate("é {{ a.b }} and {{ c + d.e }}")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range tp.Refs() {
		got = append(got, fmt.Sprintf("%s@%d", r, r.Offset))
	}
	if want := "a.b@6 c@20 d.e@24"; strings.Join(got, " ") != want {
		t.Errorf("%v; want %s", got, want)
	}
	_, err = tp.Eval(expr.Map{"a": object{"b": "x"}, "c": int64(1)})
	e := new(expr.EvalError)
	if !errors.As(err, &e) || e.Offset != 24 || !strings.Contains(e.Message, `"d"`) {
		t.Errorf("%v", err)
	}
	for v, want := range map[string]int{"ab {{ x": 3, "{{ }}": 2, "a {{ 1 + }} b": 9, "{{ 'a }}": 0} {
		_, err := expr.ParseTemplate(v)
		s := new(expr.SyntaxError)
		if !errors.As(err, &s) || s.Offset != want {
			t.Errorf("%s: %v; want offset %d", v, err, want)
		}
	}
	_, err = expr.ParseTemplate(list{"ok", object{"x": "{{ 1 + }}"}})
	if err == nil {
		t.Error("a bad template deep inside was read")
	}
}

// FuzzTemplate: any text is a template or an error with a place inside it, and
// evaluates to a value or an error.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{{ a }}", "x {{ a.b }} y {{ '{{' }}", "{{ {'a': {'b': 1}} }}", "{{ r'\\' }}", `{{ "\"}}" }}`, "{{{{}}}}", "{{ '''}}''' }}", "{{ [1, {'a': 2}] }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tp, err := expr.ParseTemplate(s)
		if err != nil {
			bad := new(expr.SyntaxError)
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(s) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		checkRefs(t, tp.Refs(), s)
		if _, lit := tp.Literal(); lit == strings.Contains(s, "{{") {
			t.Fatalf("Literal is %v", lit)
		}
		_, _ = tp.Eval(vars())
	})
}

// FuzzCompile: any text is an expression or an error with a place inside it; an
// expression ends, and says what was wrong by an *EvalError.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"a", "a.b.c", "a['b'].c", "has(a.b)", "[1,2].map(x, x * 2)", "a ? b : c", "'é' + b'x' + r\"\\\"", "1u + 2", "{'a': 1}.a",
		"state.list.exists(x, x > 1)", "lists.range(10).sort()", "'%s'.format([a])", "timestamp('2024-01-01T00:00:00Z').getFullYear()", "a.`b`", "Foo{}", "0x1F",
		"size(state)", "'a'.matches('(a*)*')", "math.greatest(1, 2.0)", "-9223372036854775808", "cel.bind(x, 1, x)", "[1,2].distinct()", "state.list[0]", "optional.none()",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := expr.Compile(s)
		if err != nil {
			bad := new(expr.SyntaxError)
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > max(len(s), expr.MaxSource) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		checkRefs(t, p.Refs(), s)
		v, err := p.Eval(vars())
		if err != nil {
			bad := new(expr.EvalError)
			if !errors.As(err, &bad) || strings.Contains(bad.Message, "internal error") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if again, err := p.Eval(vars()); err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("%v, then %v %v", v, again, err)
		}
	})
}

// checkRefs requires every reference to be inside its source.
func checkRefs(t *testing.T, refs []expr.Ref, src string) {
	t.Helper()
	for _, r := range refs {
		if r.Offset < 0 || r.Len < 0 || r.Offset+r.Len > len(src) {
			t.Fatalf("%+v in %q", r, src)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	v := vars()
	for name, src := range map[string]string{
		"reference": "{{ state.amount }}", "template": "Approve {{ state.amount }} EUR, {{ state.name }}?",
		"cel": "{{ state.amount > 1000 ? 'high' : 'low' }}", "macro": "{{ state.list.filter(x, x > 1) }}",
	} {
		tp, err := expr.ParseTemplate(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tp.Eval(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, src := range map[string]string{"reference": "state.amount", "cel": "state.amount > 1000 ? 'high' : 'low'"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := expr.Compile(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
