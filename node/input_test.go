package node_test

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// TestATextForAMessageInputBecomesAUserMessage checks values given, and the default, before and after a schema.
func TestATextForAMessageInputBecomesAUserMessage(t *testing.T) {
	want := map[string]any{"role": "user", "text": "hi"}
	schema := map[string]any{"type": "object", "required": []any{"role"}}
	for _, in := range []flow.Input{
		{Name: "m", Type: flow.TypeMessage}, {Name: "m", Type: flow.TypeMessage, Schema: schema}, {Name: "m", Type: flow.TypeMessage, Default: "hi"},
	} {
		given := engine.Values{{Name: "m", Value: "hi"}}
		if in.Default != nil {
			given = nil
		}
		for _, given := range []engine.Values{given, {{Name: "m", Value: want}}} {
			out, err := node.CheckInputs([]flow.Input{in}, given)
			if v, _ := out.Get("m"); err != nil || !reflect.DeepEqual(v, want) {
				t.Errorf("%+v, given %v: %v, %v", in, given, v, err)
			}
		}
	}
	for _, wrong := range []any{int64(1), true, []any{"hi"}} {
		if _, err := node.CheckInputs([]flow.Input{{Name: "m", Type: flow.TypeMessage}}, engine.Values{{Name: "m", Value: wrong}}); err == nil {
			t.Errorf("%v is taken for a message", wrong)
		}
	}
	if _, err := node.CheckInput(flow.Input{Name: "m", Type: flow.TypeObject}, "hi"); err == nil {
		t.Error("a text is taken for an object")
	}
}
