package trajectory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func newTestRecorder(t *testing.T) *Recorder {
	t.Helper()
	r, release, err := NewRecorderPool(nil, nil).Open(t.Context(), Key{Session: "s", Round: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func mustAdd(t *testing.T, r *Recorder, n NewNode) ID {
	t.Helper()
	id, err := r.Add(n)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSearchesForPathsVisitFewNodes records a long graph with branches that join again at
// each step, each with data that is declared twice.
func TestSearchesForPathsVisitFewNodes(t *testing.T) {
	t.Parallel()
	const steps = 3000
	r := newTestRecorder(t)
	first := mustAdd(t, r, NewNode{Type: Query})
	last := first
	for i := range steps {
		left := mustAdd(t, r, NewNode{Type: Action, Relation: Triggers, After: []ID{last}})
		right := mustAdd(t, r, NewNode{Type: Action, Relation: Triggers, After: []ID{first}})
		for _, id := range []ID{left, right} {
			mustAdd(t, r, NewNode{Type: Script, After: []ID{id}, Relation: HasScript})
			table := Artifact{Type: Table, Name: fmt.Sprint("table ", i), Columns: []string{"a", "b"}}
			if _, err := r.Declare(Attribution{}, r.now(), id, table, ToolOutput); err != nil {
				t.Fatal(err)
			}
		}
		ends := r.DropAncestors([]ID{left, right})
		if len(ends) != 2 {
			t.Fatalf("step %d ends in %v", i, ends)
		}
		last = mustAdd(t, r, NewNode{Type: Action, Relation: Triggers, After: ends})
	}
	if per := float64(r.recordIndex.visited) / float64(len(r.record.Nodes)); per > 8 {
		t.Errorf("%.1f nodes were visited for each of %d nodes", per, len(r.record.Nodes))
	}
}

// TestPathsOfTheIndexAreThoseOfTheGraph compares searches in random graphs with a plain
// search over the edges.
func TestPathsOfTheIndexAreThoseOfTheGraph(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newTestRecorder(t)
		ids := []ID{mustAdd(t, r, NewNode{Type: Query})}
		pick := func() ID { return ids[random.IntN(len(ids))] }
		for range 25 {
			ids = append(ids, mustAdd(t, r, NewNode{Type: []Type{Action, Table, File}[random.IntN(3)], After: []ID{pick()}, Relation: "custom"}))
			from, to := pick(), pick()
			leads := plainReaches(r.record.Edges, to, from)
			if err := r.Link(from, to, "other"); err == nil && leads {
				t.Fatalf("seed %d: %s -> %s closes a cycle", seed, from, to)
			}
		}
		if !(&Graph{Nodes: r.record.Nodes, Edges: r.record.Edges}).Acyclic() {
			t.Fatalf("seed %d: the graph has a cycle", seed)
		}
		for _, from := range ids {
			for _, to := range ids {
				if got, want := r.recordIndex.reaches(from, to), plainReaches(r.record.Edges, from, to); got != want {
					t.Fatalf("seed %d: a path from %s to %s: %t, expected %t", seed, from, to, got, want)
				}
			}
		}
	}
}

func plainReaches(edges []Edge, from, to ID) bool {
	seen := map[ID]bool{from: true}
	for todo := []ID{from}; len(todo) > 0; todo = todo[1:] {
		for _, e := range edges {
			if e.Source == todo[0] && !seen[e.Target] {
				seen[e.Target] = true
				todo = append(todo, e.Target)
			}
		}
	}
	return seen[to]
}

// TestPointersOfManyBranchesMove advances each of many branches, oldest first.
func TestPointersOfManyBranchesMove(t *testing.T) {
	t.Parallel()
	const branches = 5000
	r := newTestRecorder(t)
	query := mustAdd(t, r, NewNode{Type: Query})
	ends := make([]ID, branches)
	for i := range ends {
		ends[i] = mustAdd(t, r, NewNode{Type: Action, Relation: Triggers, After: []ID{query}})
	}
	for i := range ends {
		ends[i] = mustAdd(t, r, NewNode{Type: []Type{Action, State}[i%2], After: []ID{ends[i]}, Relation: "follows"})
	}
	if got := r.Current(); !slices.Equal(got, Distinct(ends)) {
		t.Fatalf("%d pointers, expected %d", len(got), len(ends))
	}
	if got := r.Record().Current; !slices.Equal(got, Distinct(ends)) {
		t.Fatalf("%d pointers are recorded, expected %d", len(got), len(ends))
	}
}
