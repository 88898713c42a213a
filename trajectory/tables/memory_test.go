package tables_test

import (
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestMemoryTables(t *testing.T) {
	t.Parallel()
	trajectorytest.Run(t, func(*testing.T) trajectory.Storage { return tables.New(tables.NewMemory()) })
}

func TestRowsAreFoundByTypeAndKey(t *testing.T) {
	t.Parallel()
	m := tables.NewMemory()
	s := tables.New(m)
	for round := 1; round <= 3; round++ {
		r := trajectorytest.Sample(t, trajectory.Key{User: "ann", Session: "s", Round: round}, round)
		if err := s.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	states, err := m.Nodes(t.Context(), trajectory.State, trajectory.OfAgent("ann", "s", 0))
	if err != nil || len(states) != 2+3+4 {
		t.Errorf("there are %d states, %v, want 9", len(states), err)
	}
	two := 2
	edges, err := m.Edges(t.Context(), trajectory.Filter{Round: &two})
	if err != nil || len(edges) == 0 {
		t.Fatalf("round 2 has no edges: %v", err)
	}
	for _, e := range edges {
		if e.Round != 2 || e.Relationship == string(trajectory.ContinuesTo) {
			t.Errorf("%+v is no edge of round 2 alone", e)
		}
	}
	tool, err := m.Nodes(t.Context(), trajectory.Table, trajectory.Filter{Round: &two})
	if err != nil || len(tool) != 1 || tool[0].Name != "Orders" || tool[0].Author != "ann" || tool[0].Version != 2 {
		t.Errorf("the table of round 2 is %+v, %v", tool, err)
	}
	if got := tables.NodeTable(trajectory.Knowledge); got != "trajectory_knowledge" {
		t.Errorf("knowledge is in the table %s", got)
	}
}
