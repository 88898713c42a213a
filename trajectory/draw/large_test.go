package draw_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
)

// TestLargeGraphsAreDrawn draws graphs of thousands of nodes that the steps of a chain,
// branches that join, and lines that pass many layers make.
func TestLargeGraphsAreDrawn(t *testing.T) {
	t.Parallel()
	nodes := 3000
	if testing.Short() {
		nodes = 500
	}
	after := map[string]func(ids []trajectory.ID) []trajectory.ID{
		"chain": func(ids []trajectory.ID) []trajectory.ID { return ids[len(ids)-1:] },
		"fan": func(ids []trajectory.ID) []trajectory.ID {
			if len(ids) == nodes {
				return ids[1:]
			}
			return ids[:1]
		},
		"chain with lines from the first": func(ids []trajectory.ID) []trajectory.ID {
			return []trajectory.ID{ids[0], ids[len(ids)-1]}
		},
	}
	for name, predecessors := range after {
		g := largeGraph(t, nodes, predecessors)
		if lines := draw.Outline(g); len(lines) != nodes+1 {
			t.Errorf("%s: the outline has %d lines for %d nodes", name, len(lines), nodes+1)
		}
		for _, format := range draw.Formats() {
			b, err := draw.Render(g, format)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(b), fmt.Sprint("n", nodes)); got == 0 || len(b) > 2000*len(g.Edges)+10_000 {
				t.Errorf("%s: %s has %d bytes and names the last node %d times", name, format, len(b), got)
			}
		}
	}
}

// largeGraph returns the graph of a query and actions, which follow from what predecessors
// selects.
func largeGraph(t *testing.T, nodes int, predecessors func(ids []trajectory.ID) []trajectory.ID) *trajectory.Graph {
	t.Helper()
	r, release, err := trajectory.NewRecorderPool(nil, nil).Open(t.Context(), trajectory.Key{Session: "s", Round: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ids []trajectory.ID
	for i := range nodes + 1 {
		n := trajectory.NewNode{Type: trajectory.Action, Name: fmt.Sprint("n", i)}
		if i == 0 {
			n.Type = trajectory.Query
		} else {
			n.After, n.Relation = predecessors(ids), trajectory.Triggers
		}
		id, err := r.Add(n)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	g := r.Graph()
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	return g
}
