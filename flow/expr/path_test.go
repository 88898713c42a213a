package expr_test

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

// hostileNames are names that need quotes in an expression.
func hostileNames() []string {
	return []string{
		"my name", "a.b", "Größe (m²)", "日本語", "🙂", `say "hi"`, "it's", `back\slash`, "{{ x }}", "}}", "]", "1st", "true", "in",
		"a->b", "a=b", "#1", "|", "<b>", "`", " ", "a]b", "-", "tab\tname", "line\nbreak", "r'x'",
	}
}

// A reference with quoted names is a path, as one with dots is: it has the same value, and
// reads back from the text that Join writes.
func TestNamesOfAnyTextAreReadByTheirQuotedForm(t *testing.T) {
	for _, name := range hostileNames() {
		src := expr.Join("node", name, "plain")
		p, err := expr.Compile(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		refs := p.Refs()
		if len(refs) != 1 || !reflect.DeepEqual(refs[0].Path, []string{name, "plain"}) || refs[0].String() != src {
			t.Errorf("%s has the references %v", src, refs)
		}
		v := expr.Map{"node": map[string]any{name: map[string]any{"plain": "found"}}}
		for of, want := range map[string]any{
			src: "found", "has(" + src + ")": true, "has(" + expr.Join("node", name, "other") + ")": false,
			"node[?" + expr.Quote(name) + "].hasValue()": true, src + " + '!'": "found!",
		} {
			got, err := eval1(of, v)
			if err != nil || got != want {
				t.Errorf("%s is %v, %v; want %v", of, got, err, want)
			}
		}
		tpl, err := expr.ParseTemplate("<{{ " + src + " }}>")
		if err != nil {
			t.Errorf("the template of %s: %v", src, err)
		} else if got, err := tpl.Eval(v); err != nil || got != "<found>" {
			t.Errorf("the template of %s is %v, %v", src, got, err)
		}
	}
}

func eval1(src string, v expr.Vars) (any, error) {
	p, err := expr.Compile(src)
	if err != nil {
		return nil, err
	}
	return p.Eval(v)
}

// Which references are paths, and so edges of a flow, does not depend on how names are quoted.
func TestPathsAreReferencesInAnyQuotes(t *testing.T) {
	for src, want := range map[string][]string{
		"a.b":             {"a", "b"},
		`a["b c"]`:        {"a", "b c"},
		"a['b c'].d":      {"a", "b c", "d"},
		` a[ "b" ] `:      {"a", "b"},
		`a["it's \"x\""]`: {"a", `it's "x"`},
		`a["b\\"]`:        {"a", `b\`},
		`a["b"`:           nil,
		`a["b"]["c`:       nil,
		"a[0]":            nil,
		"a[b]":            nil,
		`a["b" + "c"]`:    nil,
		`a["b"].size()`:   nil,
		`a.in["b"]`:       nil,
		`["b"]`:           nil,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			if want != nil {
				t.Errorf("%s: %v", src, err)
			}
			continue
		}
		if got := p.Path(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is the path %q; want %q", src, got, want)
		}
	}
}

func TestHasRefusesWhatIsNoMember(t *testing.T) {
	for _, src := range []string{"has(a)", "has(a[0])", "has(a[b])", "has(1)"} {
		if _, err := expr.Compile(src); err == nil {
			t.Errorf("%s is accepted", src)
		}
	}
}
