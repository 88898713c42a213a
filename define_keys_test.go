package weir_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
)

// jsonKeys returns the keys that a struct is written with.
func jsonKeys(v any) []string {
	var keys []string
	t := reflect.TypeOf(v)
	for field := range t.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestDefinitionHasTheKeysOfAFlowFile(t *testing.T) {
	want := slices.DeleteFunc(flow.FlowKeys(), func(k string) bool { return k == "weir" }) // Define writes it
	slices.Sort(want)
	if got := jsonKeys(weir.Definition{}); !slices.Equal(got, want) {
		t.Errorf("Definition has %v, flow files have %v", got, want)
	}
	want = slices.Sorted(slices.Values(flow.NodeKeys()))
	if got := jsonKeys(weir.NodeSpec{}); !slices.Equal(got, want) {
		t.Errorf("NodeSpec has %v, nodes of flow files have %v", got, want)
	}
}

func TestEveryDefinitionKeyReachesTheFlow(t *testing.T) {
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(t.Context()) }()
	f, err := w.Define(weir.Definition{
		Name: "all", Timeout: "10m", Description: "What it is.", Budget: map[string]any{"maxCalls": 3}, Context: map[string]any{"model": "script/demo"},
		Nodes: map[string]weir.NodeSpec{"a": {
			Type: "llmRequest", In: map[string]any{"message": "x"}, Description: "One.", Budget: map[string]any{"maxTokens": 5},
			InterruptBefore: true, InterruptAfter: true,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := f.Node("a")
	if f.Description != "What it is." || f.Spend.MaxCalls != 3 || f.Timeout != 10*time.Minute || n.Description != "One." || n.Spend.MaxTokens != 5 || !n.InterruptBefore || !n.InterruptAfter {
		t.Errorf("flow %+v, node %+v", f, n)
	}
}
