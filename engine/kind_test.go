package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestEveryKindOfValueHasAName(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]any{
		"null": {nil}, "a bool": {true}, "a number": {int64(1), 1.5, 1, json.Number("1")}, "a text": {""}, "a list": {[]any{}},
		"an object": {map[string]any{}}, "a context": {engine.Handle{ID: "main"}}, "a []string": {[]string{}},
	} {
		for _, v := range values {
			if got := engine.KindOf(v); got != want {
				t.Errorf("%#v is %q, want %q", v, got, want)
			}
		}
	}
}
