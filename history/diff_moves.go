package history

import (
	"encoding/json"
	"slices"
)

// FlowMove is a node or setting that one flow has elsewhere than another.
type FlowMove struct {
	// Key is the place of the setting in its node, "" for a whole node that has another id.
	Key string
	// From and To are the nodes that have it in the first and in the second flow.
	From, To string
	Value    any
}

// MovesOf returns what moved between nodes, given the differences of two flows, in their order:
// nodes that changed their id alone, and settings whose value left one node and came to another
// under the same key. What could have come from several nodes, or gone to several, has not
// moved. The type of a node does not move.
func MovesOf(list []FlowDifference) []FlowMove {
	var gone, come []FlowMove // with From or To alone
	for i := range list {
		d := &list[i]
		if d.Node == "" || d.Key != "" {
			continue
		}
		if d.InA {
			gone = append(gone, FlowMove{From: d.Node, Value: d.A})
		} else {
			come = append(come, FlowMove{To: d.Node, Value: d.B})
		}
	}
	out := matchedMoves(gone, come)
	renamed := func(id string) bool {
		return slices.ContainsFunc(out, func(m FlowMove) bool { return m.From == id || m.To == id })
	}
	gone, come = nil, nil
	for i := range list {
		d := &list[i]
		if d.Node == "" || d.Key == "" && renamed(d.Node) {
			continue
		}
		if d.InA {
			gone = appendLeaves(gone, d.Key, d.A, FlowMove{From: d.Node})
		}
		if d.InB {
			come = appendLeaves(come, d.Key, d.B, FlowMove{To: d.Node})
		}
	}
	return append(out, matchedMoves(gone, come)...)
}

// appendLeaves appends the settings of a value at a place, which is a whole node if the place is "".
func appendLeaves(out []FlowMove, key string, v any, m FlowMove) []FlowMove {
	leaves := map[string]any{key: v}
	if key == "" {
		clear(leaves)
		flatten(leaves, "", v)
	}
	for k, x := range leaves {
		if k != "type" {
			m.Key, m.Value = k, x
			out = append(out, m)
		}
	}
	return out
}

// matchedMoves pairs what is gone with what has come where both are the only ones of their key and value.
func matchedMoves(gone, come []FlowMove) (out []FlowMove) {
	from, to := byContent(gone), byContent(come)
	for content, a := range from {
		if b := to[content]; len(a) == 1 && len(b) == 1 && a[0].From != b[0].To {
			out = append(out, FlowMove{Key: a[0].Key, From: a[0].From, To: b[0].To, Value: a[0].Value})
		}
	}
	slices.SortFunc(out, func(a, b FlowMove) int {
		return slices.Compare([]string{a.From, a.Key, a.To}, []string{b.From, b.Key, b.To})
	})
	return out
}

// byContent groups by key and value.
func byContent(list []FlowMove) map[string][]FlowMove {
	out := make(map[string][]FlowMove)
	for _, m := range list {
		text, err := json.Marshal([]any{m.Key, m.Value})
		if err != nil {
			continue // it does not come from the JSON of a normal form
		}
		out[string(text)] = append(out[string(text)], m)
	}
	return out
}
