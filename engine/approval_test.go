package engine_test

import (
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestIsApprovedAcceptsOnlyExplicitApproval(t *testing.T) {
	t.Parallel()
	object := func(v engine.Value) engine.Value { return map[string]any{"approve": v} }
	for _, v := range []engine.Value{"approve", object(true), map[string]any{"approve": true, "note": "once"}} {
		if !engine.IsApproved(v) {
			t.Errorf("%v is not taken for an approval", v)
		}
	}
	for _, v := range []engine.Value{
		nil, true, int64(1), "", "yes", "Approve", "approve ", "approved", "deny", "reject", "no",
		[]any{"approve"},
		map[string]any{},
		object(false), object(nil), object("true"), object("approve"), object(int64(1)),
		map[string]any{"Approve": true},
	} {
		if engine.IsApproved(v) {
			t.Errorf("%#v is taken for an approval", v)
		}
	}
}
