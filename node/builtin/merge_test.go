package builtin_test

import (
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
