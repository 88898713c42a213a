package expr_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

func TestOpaqueValuesAreComparedAndPassedOnOnly(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]any{
		"ask.context == ask.context":              true,
		"ask.context == state.name":               false,
		"ask.context != state.name":               true,
		"[ask.context][0]":                        handle{"c1"},
		"{'c': ask.context}":                      object{"c": handle{"c1"}},
		"state.yes ? ask.context : state.none":    handle{"c1"},
		"state.list.map(x, ask.context)[1]":       handle{"c1"},
		"ask.context in [ask.context]":            true,
		"[ask.context, state.name] == ['a', 'b']": false,
	} {
		if got, err := eval(t, src); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v, want %#v", src, got, err, want)
		}
	}
	for _, src := range []string{"ask.context + 1", "ask.context.id", "string(ask.context)", "size(ask.context)", "type(ask.context)"} {
		if got, err := eval(t, src); err == nil {
			t.Errorf("%s is %#v", src, got)
		}
	}
}

func TestLazyObjectsBehaveAsMaps(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]any{
		"size(lazy)":                     int64(2),
		"'x' in lazy":                    true,
		"'z' in lazy":                    false,
		"has(lazy.of.y)":                 true,
		"lazy['x'] + 1":                  int64(8),
		"lazy.of == {'y': 'deep'}":       true,
		"lazy.exists(k, k == 'x')":       true,
		"lazy.of.map(k, k + lazy.of[k])": list{"ydeep"},
		"[lazy.of]":                      list{object{"y": "deep"}},
		"lazy.of in [{'y': 'deep'}]":     true,
	} {
		if got, err := eval(t, src); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v, want %#v", src, got, err, want)
		}
	}
	if got, err := eval(t, "[lazy][0]['gone']"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a missing member is %v, %v", got, err)
	}
}

func TestProgramAndTemplateExposeTheirSource(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(" a.b ")
	if err != nil || p.Source() != " a.b " || !reflect.DeepEqual(p.Path(), []string{"a", "b"}) {
		t.Errorf("%q, path %q, %v", p.Source(), p.Path(), err)
	}
	for src, want := range map[string]string{"{{ a + 1 }}": "a + 1", "x {{ a }}": "", "text": ""} {
		tpl, err := expr.ParseTemplate(src)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p := tpl.Program(); p != nil {
			got = strings.TrimSpace(p.Source())
		}
		if got != want {
			t.Errorf("%s has the program %q, want %q", src, got, want)
		}
	}
}
