package history_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// memoryTables returns a storage in memory that says what it was given.
func memoryTables() trajectory.Storage { return tables.New(tables.NewMemory()) }

// checkStored checks that what was stored of a session during its runs is what its
// journal gives, to the last letter, and that it is whole.
func checkStored(t *testing.T, w *weir.Weir, s trajectory.Storage, user, session string) {
	t.Helper()
	if err := compareStored(t.Context(), w, s, user, session); err != nil {
		t.Error(err)
	}
}

// compareStored returns how what was kept of a session differs from what its journal
// gives, or what is wrong with it.
func compareStored(ctx context.Context, w *weir.Weir, s trajectory.Storage, user, session string) error {
	agents, err := w.Agents(ctx, session)
	if err != nil {
		return err
	}
	stored, err := trajectory.Agents(ctx, s, user, session)
	if err != nil || !reflect.DeepEqual(agents, stored) {
		return fmt.Errorf("the journal has agents %v, and the storage %v, %w", agents, stored, err)
	}
	for _, a := range agents {
		if err := sameOfAgent(ctx, w, s, user, session, a.Sub); err != nil {
			return fmt.Errorf("sub-agent %d, %s: %w", a.Sub, a.Name, err)
		}
	}
	return nil
}

func sameOfAgent(ctx context.Context, w *weir.Weir, s trajectory.Storage, user, session string, sub int) error {
	made, err := w.Trajectory(ctx, session, sub)
	if err != nil {
		return err
	}
	kept, err := trajectory.LoadGraph(ctx, s, user, session, sub)
	if err == nil {
		err = sameGraph(made, kept)
	}
	if err != nil {
		return err
	}
	if err := checkComplete(made); err != nil {
		return fmt.Errorf("%w in\n%s", err, graphText(made))
	}
	keys, err := s.List(ctx, trajectory.AgentFilter(user, session, sub))
	if err != nil {
		return err
	}
	for _, k := range keys {
		r, err := s.Load(ctx, k)
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameGraph returns where two graphs differ.
func sameGraph(made, kept *trajectory.Graph) error {
	a, err := made.NodeLink()
	if err != nil {
		return err
	}
	b, err := kept.NodeLink()
	if err != nil || bytes.Equal(a, b) {
		return err
	}
	one, two := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(one), len(two)) {
		if one[i] != two[i] {
			return fmt.Errorf("line %d: the journal gives\n%s\nkept was\n%s\nof\n%s\nand\n%s", i+1, one[i], two[i], graphText(made), graphText(kept))
		}
	}
	return fmt.Errorf("the journal gives\n%s\nkept was\n%s", a, b)
}

// checkComplete returns what is wrong with a graph: a cycle, more than one piece, a number
// that is left out, a pointer to what a later step follows from.
func checkComplete(g *trajectory.Graph) error {
	if !g.Acyclic() {
		return errors.New("there is a cycle")
	}
	if n := components(g); n != 1 {
		return fmt.Errorf("there are %d pieces", n)
	}
	next := map[trajectory.Type]int{}
	for _, n := range g.Nodes {
		if want := trajectory.MakeID(n.Type, next[n.Type]); n.ID != want {
			return fmt.Errorf("there is %s where %s comes next", n.ID, want)
		}
		next[n.Type]++
	}
	return nil
}

// checkEnds returns a pointer that a later step of its round follows from.
func checkEnds(g *trajectory.Graph) error {
	for _, r := range g.Rounds {
		for _, e := range g.Edges {
			if slices.Contains(r.Current, e.Source) && e.Relationship != trajectory.ContinuesTo && !e.Target.Type().IsData() {
				return fmt.Errorf("round %d: the pointer %s leads on to %s", r.Round, e.Source, e.Target)
			}
		}
	}
	return nil
}

// components is of how many parts a graph is that no edge joins.
func components(g *trajectory.Graph) int {
	root := map[trajectory.ID]trajectory.ID{}
	find := func(id trajectory.ID) trajectory.ID {
		for root[id] != id {
			root[id] = root[root[id]]
			id = root[id]
		}
		return id
	}
	for _, n := range g.Nodes {
		root[n.ID] = n.ID
	}
	parts := len(g.Nodes)
	for _, e := range g.Edges {
		if a, b := find(e.Source), find(e.Target); a != b {
			root[a] = b
			parts--
		}
	}
	return parts
}

// checkPaths returns the path of a node of the graph that the flow does not have.
func checkPaths(g *trajectory.Graph, f *flow.Flow) error {
	for _, n := range g.Nodes {
		if n.By.Path != "" && !has(&f.Graph, strings.Split(n.By.Path, "/")) {
			return fmt.Errorf("%s was made by %s, which the flow does not have", n.ID, n.By.Path)
		}
	}
	return nil
}

func has(g *flow.Graph, path []string) bool {
	id, _, _ := strings.Cut(path[0], "#")
	n := g.Node(id)
	return n != nil && (len(path) == 1 || n.Body != nil && has(n.Body, path[1:]))
}
