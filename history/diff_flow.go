package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/flow"
)

// FlowDifference is a value of the normal form in which two flows differ.
type FlowDifference struct {
	// Node is the node it is of, "" for the flow's own.
	Node string // "" for a value of the flow
	// Key is its place: "with.text", "context.model"; "" for a node that only one
	// of the flows has. An edge is "edge FROM -> TO".
	Key      string
	A, B     any
	InA, InB bool
}

// CompareFlows returns the values in which the normal forms of two flows differ, those of
// nodes first, sorted by node and key. Nothing is evaluated.
func CompareFlows(a, b *flow.Flow) ([]FlowDifference, error) { return flowDifferences(a, b) }

func flowDifferences(a, b *flow.Flow) ([]FlowDifference, error) {
	if a == b || a.Fingerprint() == b.Fingerprint() {
		return nil, nil
	}
	x, err := normalOf(a)
	if err != nil {
		return nil, err
	}
	y, err := normalOf(b)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]bool)
	for _, f := range []map[string]any{x, y} {
		for id := range members(f["nodes"]) {
			nodes[id] = true
		}
	}
	var out []FlowDifference
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		n, inA := members(x["nodes"])[id]
		m, inB := members(y["nodes"])[id]
		if inA != inB {
			out = append(out, FlowDifference{Node: id, InA: inA, InB: inB, A: n, B: m})
			continue
		}
		out = append(out, flattenedDifferences(id, n, m)...)
	}
	delete(x, "nodes")
	delete(y, "nodes")
	x["edges"], y["edges"] = edgesOf(x), edgesOf(y)
	return append(out, flattenedDifferences("", x, y)...), nil
}

func normalOf(f *flow.Flow) (map[string]any, error) {
	data, err := f.Normal()
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("normal form of flow %s: %w", f.Name, err)
	}
	return out, nil
}

func members(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// edgesOf returns the edges of a flow by their ends.
func edgesOf(f map[string]any) map[string]any {
	out := make(map[string]any)
	list, _ := f["edges"].([]any)
	for _, e := range list {
		m := members(e)
		out[fmt.Sprint(m["from"], " -> ", m["to"])] = m["id"]
	}
	return out
}

// flattenedDifferences returns the values in which two trees differ, by place.
func flattenedDifferences(node string, a, b any) []FlowDifference {
	x, y := make(map[string]any), make(map[string]any)
	flatten(x, "", a)
	flatten(y, "", b)
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	var out []FlowDifference
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		v, inA := x[k]
		w, inB := y[k]
		if inA != inB || !reflect.DeepEqual(v, w) {
			if e, ok := strings.CutPrefix(k, "edges."); ok {
				k = "edge " + e
			}
			out = append(out, FlowDifference{Node: node, Key: k, A: v, B: w, InA: inA, InB: inB})
		}
	}
	return out
}

func flatten(out map[string]any, key string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		out[key] = v
		return
	}
	for k, x := range m {
		if key != "edges" && strings.ContainsAny(k, ".\"") { // the name of a port or output may be any text
			k = strconv.Quote(k)
		}
		if key != "" {
			k = key + "." + k
		}
		flatten(out, k, x)
	}
}
