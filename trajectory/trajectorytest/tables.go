package trajectorytest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// RunTables tests tables, which must also pass Run through tables.New. The function opens empty ones.
func RunTables(t *testing.T, open func(t *testing.T) tables.Tables) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t *testing.T, m tables.Tables)
	}{
		{"rows are read as they were stored", readsRows},
		{"rows are found by type and by each part of the key", findsRows},
		{"tables that nothing was stored in are empty", emptyTables},
		{"a type that there is not is an error or has no rows", unknownType},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func put(t *testing.T, m tables.Tables, r trajectory.Record) tables.Rows {
	t.Helper()
	rows, err := tables.RowsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Replace(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func readsRows(t *testing.T, m tables.Tables) {
	for _, r := range []trajectory.Record{
		Sample(t, key("ann", "s1", 3, 2), 4), Sample(t, key("ann", "s1", 3, 2), 1), {Key: key("", "s", 1, 0)},
	} {
		want := put(t, m, r)
		got, err := m.Rows(t.Context(), r.Key)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as\n%+v, %v, and was\n%+v", r.Key, got, err, want)
		}
	}
}

func findsRows(t *testing.T, m tables.Tables) {
	for round := 1; round <= 3; round++ {
		for sub := range 2 {
			put(t, m, Sample(t, key("ann", "s1", round, sub), round))
		}
		put(t, m, Sample(t, key("ann", "s2", round, 0), round))
		put(t, m, Sample(t, key("bob", "s3", round, 0), round))
	}
	for _, test := range []struct {
		f    trajectory.Filter
		want int // states: one more than the number of the round
	}{
		{trajectory.AgentFilter("ann", "s1", 0), 2 + 3 + 4},
		{trajectory.SessionFilter("ann", "s1"), 2 * (2 + 3 + 4)},
		{trajectory.Filter{}, 4 * (2 + 3 + 4)},
		{trajectory.Filter{User: new("ann")}, 3 * (2 + 3 + 4)},
		{trajectory.Filter{Session: new("s3")}, 2 + 3 + 4},
		{trajectory.Filter{Round: new(2)}, 4 * 3},
		{trajectory.Filter{Sub: new(1)}, 2 + 3 + 4},
		{trajectory.Filter{User: new("bob"), Round: new(3)}, 4},
		{trajectory.Filter{User: new("bob"), Session: new("s1")}, 0},
	} {
		states, err := m.Nodes(t.Context(), trajectory.State, test.f)
		if err != nil || len(states) != test.want {
			t.Errorf("%+v: there are %d states, %v, want %d", test.f, len(states), err, test.want)
		}
		edges, err := m.Edges(t.Context(), test.f)
		if err != nil || (len(edges) > 0) != (test.want > 0) {
			t.Errorf("%+v: there are %d edges, %v", test.f, len(edges), err)
		}
		var places []rowPlace
		for _, n := range states {
			places = append(places, rowPlace{key(n.User, n.Session, n.Round, n.Sub), n.Seq})
		}
		inOrder(t, test.f, places)
		places = nil
		for _, e := range edges {
			places = append(places, rowPlace{key(e.User, e.Session, e.Round, e.Sub), e.Seq})
		}
		inOrder(t, test.f, places)
	}
	found, err := m.Nodes(t.Context(), trajectory.Table, trajectory.AgentFilter("bob", "s3", 0))
	if err != nil || len(found) != 3 || found[0].Name != "Orders" || found[0].Author != "bob" || found[0].Version != 2 {
		t.Errorf("the tables are %+v, %v", found, err)
	}
}

// rowPlace is the position of a row.
type rowPlace struct {
	k   trajectory.Key
	seq int
}

// inOrder fails the test if rows are not ordered by round and position, or belong to rounds that do not match a
// filter.
func inOrder(t *testing.T, f trajectory.Filter, rows []rowPlace) {
	t.Helper()
	last := rowPlace{seq: -1}
	for _, p := range rows {
		if first := trajectory.SortKeys([]trajectory.Key{p.k, last.k})[0]; first != last.k || p.k == last.k && p.seq <= last.seq {
			t.Errorf("%+v: %+v comes after %+v", f, p, last)
		}
		if last = p; !f.Match(p.k) {
			t.Errorf("%+v: there is a row of %s", f, p.k)
		}
	}
}

func emptyTables(t *testing.T, m tables.Tables) {
	ctx, k := t.Context(), key("ann", "s1", 1, 0)
	if _, err := m.Rows(ctx, k); !errors.Is(err, trajectory.ErrNotFound) {
		t.Errorf("rows: got %v, want ErrNotFound", err)
	}
	keys, err := m.Rounds(ctx, trajectory.Filter{})
	nodes, ofNodes := m.Nodes(ctx, trajectory.Query, trajectory.Filter{})
	edges, ofEdges := m.Edges(ctx, trajectory.Filter{})
	before, after, ofNear := m.Adjacent(ctx, k)
	gone, ofGone := m.Delete(ctx, trajectory.Filter{})
	if err := errors.Join(err, ofNodes, ofEdges, ofNear, ofGone); err != nil || len(keys)+len(nodes)+len(edges)+before+after+gone != 0 {
		t.Errorf("there are %v, %v, %v, %d, %d, %d, %v", keys, nodes, edges, before, after, gone, err)
	}
}

func unknownType(t *testing.T, m tables.Tables) {
	put(t, m, Sample(t, key("ann", "s1", 1, 0), 0))
	for _, typ := range []trajectory.Type{"", "Edge", "query", "Query; --"} {
		if nodes, err := m.Nodes(t.Context(), typ, trajectory.Filter{}); len(nodes) > 0 {
			t.Errorf("of the type %q there are %v, %v", typ, nodes, err)
		}
	}
}
