package flow_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/weir-run/weir/flow"
)

func TestTheSchemaHasTheKeysThatTheLoaderReads(t *testing.T) {
	text, err := flow.Schema(testCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	var root struct {
		Properties map[string]any `json:"properties"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for what, keys := range map[string][2][]string{
		"a flow": {slices.Sorted(maps.Keys(root.Properties)), slices.Sorted(slices.Values(flow.FlowKeys()))},
		"a node": {slices.Sorted(maps.Keys(root.Defs["node"].Properties)), slices.Sorted(slices.Values(flow.NodeKeys()))},
	} {
		if !slices.Equal(keys[0], keys[1]) {
			t.Errorf("%s: the schema has %v, the loader reads %v", what, keys[0], keys[1])
		}
	}
}
