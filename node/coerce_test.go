package node_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// Each member that a message may have, each with a value of another type, and what is no message.
func TestAMessageInputHasTheMembersOfAMessage(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	said := func(more object) object {
		m := object{"role": "user", "text": "x"}
		maps.Copy(m, more)
		return m
	}
	for _, c := range []struct {
		in    any
		fault string
	}{
		{said(nil), ""},
		{object{"role": "user", "parts": []any{}}, ""},
		{said(object{"id": "a", "name": "n", "pinned": true, "priority": 7, "metadata": object{}, "parts": nil}), ""},
		{object{"role": "assistant", "calls": []any{}, "reasoning": "r", "native": []any{}, "provider": "p"}, ""},
		{object{"role": "tool", "text": "x", "call": "c", "call_id": "c", "failed": true}, ""}, // the node refuses it
		{object{"rol": 1}, "expected a message"},
		{object{}, "expected a message"},
		{object{"role": "user"}, "neither text nor parts"},
		{object{"role": "user", "txt": "x"}, `no member "txt"`},
		{said(object{"content": "x"}), `no member "content"`},
		{said(object{"id": 1}), "the member id"},
		{said(object{"pinned": "yes"}), "the member pinned"},
		{said(object{"priority": "high"}), "the member priority"},
		{said(object{"priority": 101}), "the member priority"},
		{said(object{"call_id": true}), "the member call_id"},
	} {
		for kind, in := range map[flow.PortType]any{flow.TypeMessage: c.in, flow.TypeMessages: []any{"a text", c.in}} {
			_, err := node.CheckInput(flow.Input{Name: "m", Type: kind}, in)
			if got := fmt.Sprint(err); (err == nil) != (c.fault == "") || err != nil && !strings.Contains(got, c.fault) {
				t.Errorf("%s %v: %s, expected %q", kind, c.in, got, c.fault)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[convo.Message]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if err := node.CheckMessage(said(object{name: nil})); err != nil {
			t.Errorf("a message of a history has %s: %v", name, err)
		}
	}
}
