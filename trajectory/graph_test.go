package trajectory_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/trajectory"
)

var now = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

// sortable, connected and unreached judge a graph by other ways than the
// package does.

// sortable takes nodes away that nothing leads to until none is left.
func sortable(g *trajectory.Graph) bool {
	edges := slices.Clone(g.Edges)
	left := map[trajectory.ID]bool{}
	for _, n := range g.Nodes {
		left[n.ID] = true
	}
	for len(left) > 0 {
		before := len(left)
		for id := range left {
			if !slices.ContainsFunc(edges, func(e trajectory.Edge) bool { return e.Target == id }) {
				delete(left, id)
				edges = slices.DeleteFunc(edges, func(e trajectory.Edge) bool { return e.Source == id })
			}
		}
		if len(left) == before {
			return false
		}
	}
	return true
}

// connected counts the pieces of a graph, edges taken as two-way.
func connected(g *trajectory.Graph) int {
	head := map[trajectory.ID]trajectory.ID{}
	for _, n := range g.Nodes {
		head[n.ID] = n.ID
	}
	find := func(id trajectory.ID) trajectory.ID {
		for head[id] != id {
			id = head[id]
		}
		return id
	}
	pieces := len(g.Nodes)
	for _, e := range g.Edges {
		if a, b := find(e.Source), find(e.Target); a != b {
			head[a] = b
			pieces--
		}
	}
	return pieces
}

// unreached counts the nodes that no path from the first leads to.
func unreached(g *trajectory.Graph) int {
	seen := map[trajectory.ID]bool{}
	if len(g.Nodes) > 0 {
		seen[g.Nodes[0].ID] = true
	}
	for grown := true; grown; {
		grown = false
		for _, e := range g.Edges {
			if seen[e.Source] && !seen[e.Target] {
				seen[e.Target], grown = true, true
			}
		}
	}
	return len(g.Nodes) - len(seen)
}

func round(number int) trajectory.Key {
	return trajectory.Key{User: "ann", Session: "s", Round: number}
}

// open opens the first round in a book of its own, which keeps nothing.
func open(t *testing.T) *trajectory.Recorder {
	t.Helper()
	r, release, err := trajectory.NewRecorderPool(nil, clock).Open(t.Context(), round(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release(t.Context()) })
	return r
}

func add(t *testing.T, r *trajectory.Recorder, n trajectory.NewNode) trajectory.ID {
	t.Helper()
	id, err := r.Add(n)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func edges(g *trajectory.Graph) string {
	var out []string
	for _, e := range g.Edges {
		out = append(out, short(e.Source)+" "+string(e.Relationship)+" "+short(e.Target))
	}
	return strings.Join(out, ", ")
}

// short returns an ID without its type and zeros: q0 for Query(query00000).
func short(id trajectory.ID) string {
	_, n, err := id.Parse()
	if err != nil {
		return "?" + string(id)
	}
	return strings.ToLower(string(id)[:2]) + string(rune('0'+n))
}

func TestIDsAreReadAsTheyAreMade(t *testing.T) {
	t.Parallel()
	for _, typ := range trajectory.Types() {
		for _, n := range []int{0, 7, 99999, 100000, 1234567} {
			id := trajectory.MakeID(typ, n)
			if gotType, got, err := id.Parse(); err != nil || gotType != typ || got != n {
				t.Errorf("%s is read as %s %d, %v", id, gotType, got, err)
			}
		}
	}
	if id := trajectory.MakeID(trajectory.Query, 0); id != "Query(query00000)" {
		t.Errorf("the first query is %s", id)
	}
	for _, id := range []trajectory.ID{
		"", "Query", "Query()", "Query(query0)", "Query(query000001)", "Query(state00000)", "Query(query-0001)",
		"Query(query+0001)", "query(query00000)", "Query(query00000", "Query(query00000))", "Answer(answer00000)", "Query(query0x000)",
	} {
		if typ, n, err := id.Parse(); err == nil {
			t.Errorf("%q is read as %s %d", string(id), typ, n)
		}
	}
}

func TestBridgesLeadFromAllLeavesToTheNextQuery(t *testing.T) {
	t.Parallel()
	one := open(t)
	q := add(t, one, trajectory.NewNode{Type: trajectory.Query})
	a := add(t, one, trajectory.NewNode{Type: trajectory.Action})
	add(t, one, trajectory.NewNode{Type: trajectory.File, After: []trajectory.ID{a}, Relation: trajectory.Produces})
	add(t, one, trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{q}})
	first := one.Record()
	second := trajectory.Record{
		Key: round(5), Initial: "Query(query00001)", Current: []trajectory.ID{"Query(query00001)"},
		Nodes: []trajectory.Node{{ID: "Query(query00001)", Type: trajectory.Query, Round: 5}},
	}
	empty := trajectory.Record{Key: round(3)}
	g, err := trajectory.JoinRounds(second, empty, first)
	if err != nil {
		t.Fatal(err)
	}
	want := "qu0 triggers ac0, ac0 produces fi0, qu0 has_conclusion st0, fi0 continues_to qu1, st0 continues_to qu1"
	if got := edges(g); got != want {
		t.Errorf("the edges are\n%s, want\n%s", got, want)
	}
	if len(g.Rounds) != 3 || g.Round != 5 {
		t.Errorf("the rounds are %+v of %s", g.Rounds, g.Key)
	}
}

func TestOnlyRoundsOfOneAgentAreJoinedAndEachOnce(t *testing.T) {
	t.Parallel()
	base := trajectory.Record{Key: round(1)}
	other := func(k trajectory.Key) trajectory.Record { return trajectory.Record{Key: k} }
	for name, r := range map[string]trajectory.Record{
		"the same round":    base,
		"another user":      other(trajectory.Key{User: "bob", Session: "s", Round: 2}),
		"another session":   other(trajectory.Key{User: "ann", Session: "z", Round: 2}),
		"another sub-agent": other(trajectory.Key{User: "ann", Session: "s", Round: 2, Sub: 1}),
	} {
		if _, err := trajectory.JoinRounds(base, r); err == nil {
			t.Errorf("%s was joined", name)
		}
	}
}

func TestActiveBranchesKeepWhatLeadsToThePointers(t *testing.T) {
	t.Parallel()
	r := open(t)
	add(t, r, trajectory.NewNode{Type: trajectory.Query})
	a := add(t, r, trajectory.NewNode{Type: trajectory.Action})
	dead := add(t, r, trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{a}, Pointer: trajectory.PointerKeep})
	add(t, r, trajectory.NewNode{Type: trajectory.Knowledge, After: []trajectory.ID{a}, Relation: trajectory.Produces})
	live := add(t, r, trajectory.NewNode{Type: trajectory.State})
	g := r.Graph().Active()
	for _, n := range g.Nodes {
		if n.ID == dead || n.Type == trajectory.Knowledge {
			t.Errorf("%s is not on an active branch", n.ID)
		}
	}
	if len(g.Nodes) != 3 || g.Nodes[2].ID != live || connected(g) != 1 {
		t.Errorf("the active branches are %s", edges(g))
	}
	next := trajectory.Record{
		Key: round(2), Initial: "Query(query00001)",
		Nodes: []trajectory.Node{{ID: "Query(query00001)", Type: trajectory.Query, Round: 2}},
	}
	both, err := trajectory.JoinRounds(r.Record(), next)
	if err != nil {
		t.Fatal(err)
	}
	if got := edges(both.Active()); got != "qu0 triggers ac0, ac0 has_conclusion st1, st1 continues_to qu1" {
		t.Errorf("the active branches of both rounds are %s", got)
	}
	only, err := both.OnlyRound(1)
	if err != nil || len(only.Nodes) != len(r.Record().Nodes) || len(only.Rounds) != 1 {
		t.Errorf("round 1 alone is %+v, %v", only, err)
	}
	if _, err := both.OnlyRound(7); err == nil || !strings.Contains(err.Error(), "[1 2]") {
		t.Errorf("round 7: got %v, want an error with the rounds there are", err)
	}
}
