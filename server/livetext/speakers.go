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
	s := speakersOf(f)
	out := make(map[string]bool)
	for _, n := range f.Nodes {
		if live(n) && s.speaks[n.ID] && (n.Type == "agent" || s.isLast(n.ID)) {
			out[n.ID] = true
		}
	}
	return out
}

// Last returns the nodes of a flow after which no other node speaks. The answer is the text of one of them. Their texts are not
// all shown while they are written.
func Last(f *flow.Flow) (out []*flow.Node) {
	s := speakersOf(f)
	for _, n := range f.Nodes {
		if s.speaks[n.ID] && s.isLast(n.ID) {
			out = append(out, n)
		}
	}
	return out
}

// speakers are the nodes of a flow that speak in its main context, and what follows each node.
type speakers struct {
	speaks map[string]bool
	next   map[string][]string
}

func (s *speakers) isLast(id string) bool {
	return !speaksAfter(id, s.next, s.speaks, make(map[string]bool))
}

func speakersOf(f *flow.Flow) *speakers {
	s := &speakers{make(map[string]bool), make(map[string][]string)}
	from, types := make(map[string]string), make(map[string]string) // the source of the context of a node, and its type
	for _, e := range f.Edges {
		s.next[e.From] = append(s.next[e.From], e.To)
		if e.Kind == flow.EdgeContext {
			from[e.To] = e.From
		}
	}
	for _, n := range f.Nodes {
		types[n.ID] = n.Type
	}
	for _, n := range f.Nodes {
		s.speaks[n.ID] = mayAnswer(n) && inMain(n.ID, from, types)
	}
	return s
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
