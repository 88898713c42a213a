package livetext

import (
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// ends reports whether an event ends the effect with a key of Reader.
func ends(it *weir.Item, key string) bool {
	path, effect, _ := strings.Cut(key, " ")
	if done, ok := it.Event.(*engine.EffectCompleted); ok && effect != "" {
		return done.Key == effect
	}
	done, ok := it.Event.(*engine.NodeCompleted)
	return ok && done.Path == path
}

// Speakers returns the ids of the nodes of a flow whose text is shown as its answer while it
// is written: agents, and nodes after which no other node speaks. Nodes inside composites
// and nodes that have a context of their own are none of them.
func Speakers(f *flow.Flow) map[string]bool {
	g := &f.Graph
	next := make(map[string][]string)
	from := make(map[string]string) // source of the context of a node
	for _, e := range g.Edges {
		next[e.From] = append(next[e.From], e.To)
		if e.Kind == flow.EdgeContext {
			from[e.To] = e.From
		}
	}
	types := make(map[string]string)
	speaks := make(map[string]bool)
	for _, n := range g.Nodes {
		types[n.ID] = n.Type
	}
	for _, n := range g.Nodes {
		speaks[n.ID] = mayAnswer(n) && inMain(n.ID, from, types)
	}
	out := make(map[string]bool)
	for _, n := range g.Nodes {
		if live(n) && speaks[n.ID] && (n.Type == "agent" || !speaksAfter(n.ID, next, speaks, make(map[string]bool))) {
			out[n.ID] = true
		}
	}
	return out
}

// mayAnswer reports whether a node may add an assistant message to its context.
func mayAnswer(n *flow.Node) bool {
	return live(n) || n.Body != nil || n.Uses != nil || len(n.Runs) > 0
}

// live reports whether the text of a node is its answer.
func live(n *flow.Node) bool {
	skips, _ := n.With["skipHistory"].(bool)
	switch n.Type {
	case "llmRequest", "agent", "say":
		return !skips
	}
	return false
}

// inMain reports whether the context of a node is the main one, as far as the edges say.
func inMain(id string, from, types map[string]string) bool {
	for range types { // a chain is not longer than the flow
		source, ok := from[id]
		if !ok {
			return true
		}
		if types[source] == "newContext" {
			return false
		}
		id = source
	}
	return true
}

// speaksAfter reports whether a node that speaks can be reached from a node.
func speaksAfter(id string, next map[string][]string, speaks, seen map[string]bool) bool {
	for _, to := range next[id] {
		if seen[to] {
			continue
		}
		seen[to] = true
		if speaks[to] || speaksAfter(to, next, speaks, seen) {
			return true
		}
	}
	return false
}
