package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
)

func TestMergeConflictHintDoesNotSuggestMerge(t *testing.T) {
	r := play(t, weir.Options{}, `
weir: 1
name: both
nodes:
  a: {type: template, with: {text: one}}
  b: {type: template, with: {text: two}}
  end: {type: merge, in: {value: ["{{ a.text }}", "{{ b.text }}"]}}
outputs: {r: "{{ end.value }}"}
`, nil, nil)
	if r.Error == nil || r.Error.Code != "port_conflict" || !strings.Contains(r.Error.Hint, "mode: list") {
		t.Errorf("%+v", r.Error)
	}
}

func TestMergeCoalesceTakesTheFirstValueInTheOrderOfTheEdges(t *testing.T) {
	const text = `
weir: 1
name: coalesce
nodes:
  check: {type: decision, with: {expr: "'%s'", branches: ["yes", "no"]}}
  a: {type: transform, after: check.yes, with: {expr: "%s"}}
  b: {type: template, with: {text: two}}
  c: {type: template, after: b, with: {text: three}}
  end: {type: merge, in: {value: [%s]}, with: {mode: coalesce}}
outputs: {r: "{{ end.value }}"}
`
	const abc, cba = `"{{ a.value }}", "{{ b.text }}", "{{ c.text }}"`, `"{{ c.text }}", "{{ b.text }}", "{{ a.value }}"`
	for _, c := range []struct {
		branch, a, order string
		want             any
	}{
		{"yes", "'one'", abc, "one"},
		{"no", "'one'", abc, "two"},
		{"yes", "'one'", cba, "three"},
		{"yes", "null", abc, nil},
		{"yes", "[1, 2]", abc, "[1 2]"},
		{"no", "'one'", `"{{ a.value }}"`, "absent"},
	} {
		r := play(t, weir.Options{}, fmt.Sprintf(text, c.branch, c.a, c.order), nil, nil)
		got, ok := r.Outputs.Get("r")
		if !ok {
			got = "absent"
		}
		if r.Error != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v, %v", c, got, r.Error)
		}
	}
}
