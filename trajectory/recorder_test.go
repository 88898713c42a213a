package trajectory_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/trajectory"
)

func TestRelationsFollowFromTypesOrMustBeGiven(t *testing.T) {
	t.Parallel()
	inferred := map[[2]trajectory.Type]trajectory.Relation{
		{trajectory.Query, trajectory.Action}: trajectory.Triggers,
		{trajectory.State, trajectory.Action}: trajectory.Triggers,
		{trajectory.Query, trajectory.State}:  trajectory.HasConclusion,
		{trajectory.Action, trajectory.State}: trajectory.HasConclusion,
		{trajectory.State, trajectory.State}:  trajectory.HasConclusion,
	}
	for _, from := range trajectory.Types() {
		for _, to := range trajectory.Types() {
			one, two := trajectory.MakeID(from, 3), trajectory.MakeID(to, 4)
			got, err := trajectory.ResolveRelation(one, two, "")
			want, ok := inferred[[2]trajectory.Type{from, to}]
			switch {
			case ok && (got != want || err != nil):
				t.Errorf("%s -> %s is %q, %v, want %s", from, to, got, err, want)
			case !ok && (err == nil || !strings.Contains(err.Error(), string(one)+" -> "+string(two))):
				t.Errorf("%s -> %s is %q, %v, want an error that names the pair", from, to, got, err)
			case !ok && to != trajectory.Query && !errors.Is(err, trajectory.ErrNoRelation):
				t.Errorf("%s -> %s: got %v, want ErrNoRelation", from, to, err)
			}
		}
	}
}

func TestAGivenRelationMustFitItsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to trajectory.Type
		relation trajectory.Relation
		ok       bool
	}{
		{trajectory.Action, trajectory.Action, trajectory.Triggers, true},
		{trajectory.Table, trajectory.Column, trajectory.HasColumn, true},
		{trajectory.Skill, trajectory.Script, trajectory.HasScript, true},
		{trajectory.Query, trajectory.Tool, trajectory.FindRelevantTool, true},
		{trajectory.Action, trajectory.File, "is_of_my_own_2", true},
		{trajectory.Table, trajectory.File, trajectory.HasColumn, false},
		{trajectory.Query, trajectory.State, trajectory.Triggers, false},
		{trajectory.Query, trajectory.Action, trajectory.ContinuesTo, false},
		{trajectory.State, trajectory.Query, trajectory.RefersTo, false},
		{trajectory.Action, trajectory.File, "Produces", false},
		{trajectory.Action, trajectory.File, "makes a", false},
		{trajectory.Action, trajectory.File, trajectory.Relation(strings.Repeat("x", 64)), false},
	} {
		got, err := trajectory.ResolveRelation(trajectory.MakeID(c.from, 0), trajectory.MakeID(c.to, 1), c.relation)
		if c.ok && (err != nil || got != c.relation) || !c.ok && !errors.Is(err, trajectory.ErrRelation) {
			t.Errorf("%s -%s-> %s: got %q, %v", c.from, c.relation, c.to, got, err)
		}
	}
}

func TestRoundBeginsWithItsOnlyQuery(t *testing.T) {
	t.Parallel()
	r := open(t)
	q := add(t, r, trajectory.NewNode{Type: trajectory.Query, Attributes: map[string]any{trajectory.AttrText: "Why?"}})
	if q != "Query(query00000)" {
		t.Errorf("the first query is %s", q)
	}
	if _, err := r.Add(trajectory.NewNode{Type: trajectory.Query}); !errors.Is(err, trajectory.ErrSecondQuery) {
		t.Errorf("a second query: got %v", err)
	}
	late := open(t)
	a := add(t, late, trajectory.NewNode{Type: trajectory.Action})
	if _, err := late.Add(trajectory.NewNode{Type: trajectory.Query}); !errors.Is(err, trajectory.ErrSecondQuery) || !strings.Contains(err.Error(), string(a)) {
		t.Errorf("a query after an action: got %v", err)
	}
	if rec := late.Record(); rec.Initial != a {
		t.Errorf("a round without query begins with %q, want %s", rec.Initial, a)
	}
	if _, err := open(t).Add(trajectory.NewNode{Type: trajectory.Query, After: []trajectory.ID{q}}); !errors.Is(err, trajectory.ErrRelation) {
		t.Errorf("a query after a query: got %v", err)
	}
}

func TestPointersAdvanceForStepsAndAppendIfRequested(t *testing.T) {
	t.Parallel()
	r := open(t)
	at := func(want ...trajectory.ID) {
		t.Helper()
		if got := r.Current(); !slices.Equal(got, want) {
			t.Errorf("the pointers are %v, want %v", got, want)
		}
	}
	q := add(t, r, trajectory.NewNode{Type: trajectory.Query})
	at(q)
	k := add(t, r, trajectory.NewNode{Type: trajectory.Knowledge, Relation: trajectory.FindRelevantKnowledge})
	at(q)
	a := add(t, r, trajectory.NewNode{Type: trajectory.Action})
	at(a)
	b := add(t, r, trajectory.NewNode{Type: trajectory.Action, After: []trajectory.ID{a}, Relation: trajectory.Generates})
	c := add(t, r, trajectory.NewNode{Type: trajectory.Action, After: []trajectory.ID{a}, Relation: trajectory.Generates})
	at(b, c)
	s := add(t, r, trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{b}, Pointer: trajectory.PointerAppend})
	at(b, c, s)
	f := add(t, r, trajectory.NewNode{Type: trajectory.File, After: []trajectory.ID{s}, Relation: trajectory.Produces, Pointer: trajectory.PointerAdvance})
	at(b, c, f)
	add(t, r, trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{k}, Relation: trajectory.HasConclusion, Pointer: trajectory.PointerKeep})
	at(b, c, f)
	end := add(t, r, trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{b, c}})
	at(f, end)
	if err := r.SetPointers(end, end, q); err != nil {
		t.Fatal(err)
	}
	at(q, end)
	if err := r.SetPointers("State(state00099)"); !errors.Is(err, trajectory.ErrUnknownNode) {
		t.Errorf("a pointer to nothing: got %v", err)
	}
	if rec := r.Record(); rec.Initial != q {
		t.Errorf("the round begins with %s", rec.Initial)
	}
}

func TestANodeNeedsPredecessorsOfItsRound(t *testing.T) {
	t.Parallel()
	r := open(t)
	add(t, r, trajectory.NewNode{Type: trajectory.Query})
	if err := r.SetPointers(); err != nil {
		t.Fatal(err)
	}
	before := r.Record()
	for _, n := range []trajectory.NewNode{
		{Type: trajectory.State},
		{Type: trajectory.State, After: []trajectory.ID{"Action(action00000)"}},
		{Type: trajectory.State, After: []trajectory.ID{"nonsense"}},
		{Type: trajectory.Tool, After: []trajectory.ID{"Query(query00000)"}},
		{Type: "Answer", After: []trajectory.ID{"Query(query00000)"}},
		{Type: trajectory.State, After: []trajectory.ID{"Query(query00000)"}, Attributes: map[string]any{"name": 1}},
		{Type: trajectory.State, After: []trajectory.ID{"Query(query00000)"}, Attributes: map[string]any{"f": func() {}}},
		{Type: trajectory.State, After: []trajectory.ID{"Query(query00000)"}, Pointer: 9},
	} {
		if id, err := r.Add(n); err == nil {
			t.Errorf("%+v was added as %s", n, id)
		}
	}
	if !reflect.DeepEqual(before, r.Record()) {
		t.Error("what was refused has changed the round")
	}
}

func TestLinksCloseNoCycleAndDoNotChangeTheirRelation(t *testing.T) {
	t.Parallel()
	r := open(t)
	q := add(t, r, trajectory.NewNode{Type: trajectory.Query})
	a := add(t, r, trajectory.NewNode{Type: trajectory.Action})
	b := add(t, r, trajectory.NewNode{Type: trajectory.Action, Relation: trajectory.Triggers})
	s := add(t, r, trajectory.NewNode{Type: trajectory.State})
	for _, c := range []struct {
		from, to trajectory.ID
		relation trajectory.Relation
		want     error
	}{
		{s, a, "", trajectory.ErrCycle},
		{b, a, trajectory.Triggers, trajectory.ErrCycle},
		{b, b, trajectory.Generates, trajectory.ErrCycle},
		{a, b, trajectory.Generates, trajectory.ErrAlreadyLinked},
		{a, b, trajectory.Triggers, nil},
		{q, s, "", nil},
		{q, s, "", nil},
		{a, q, trajectory.RefersTo, trajectory.ErrRelation},
		{a, "State(state00007)", "", trajectory.ErrUnknownNode},
	} {
		if err := r.Link(c.from, c.to, c.relation); !errors.Is(err, c.want) {
			t.Errorf("%s -%s-> %s: got %v, want %v", c.from, c.relation, c.to, err, c.want)
		}
	}
	if n := len(r.Record().Edges); n != 4 {
		t.Errorf("there are %d edges, want 4: %s", n, edges(r.Graph()))
	}
}

func TestEachChangeKeepsTheOldValue(t *testing.T) {
	t.Parallel()
	r := open(t)
	made := trajectory.Attribution{Run: "r1", Path: "draft", Agent: "writer", User: "ann"}
	id, err := r.Add(trajectory.NewNode{
		Type: trajectory.Query, Name: "first", Attributes: map[string]any{"rows": 12, "gone": nil, "list": []int{1, 2}}, By: made,
	})
	if err != nil {
		t.Fatal(err)
	}
	text, later := "second", now.Add(time.Hour)
	editor := trajectory.Attribution{User: "bob"}
	edits := []trajectory.Edit{
		{Name: &text, Description: &text},
		{Set: map[string]any{"rows": 13, "new": true}, Delete: []string{"gone", "never there"}},
		{Set: map[string]any{"rows": 13, "list": []any{int64(1), 2}}, Name: &text},
		{Set: map[string]any{"new": nil}},
	}
	var versions []trajectory.Node
	for _, e := range edits {
		n, err := r.Node(id)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, n)
		if err := r.Edit(id, e, editor, later); err != nil {
			t.Fatal(err)
		}
	}
	n, err := r.Node(id)
	if err != nil {
		t.Fatal(err)
	}
	want := trajectory.History{
		1: {At: later, By: editor, Old: trajectory.Attributes{"name": "first", "description": ""}},
		2: {At: later, By: editor, Old: trajectory.Attributes{"rows": int64(12), "gone": nil}, Added: []string{"new"}},
		3: {At: later, By: editor, Old: trajectory.Attributes{"new": true}},
	}
	if n.Version != 4 || !reflect.DeepEqual(n.History, want) {
		t.Errorf("version %d has the history\n%+v, want\n%+v", n.Version, n.History, want)
	}
	if n.By != made || !n.Created.Equal(now) {
		t.Errorf("it was made by %+v at %s", n.By, n.Created)
	}
	for _, old := range versions {
		if got, ok := n.AtVersion(old.Version); !ok || !reflect.DeepEqual(got, old) {
			t.Errorf("version %d is\n%+v, and was\n%+v", old.Version, got, old)
		}
	}
	for _, e := range []trajectory.Edit{
		{Set: map[string]any{"description": "x"}}, {Set: map[string]any{"": 1}}, {Set: map[string]any{"a": 1}, Delete: []string{"a"}},
	} {
		if err := r.Edit(id, e, editor, later); err == nil {
			t.Errorf("%+v was done", e)
		}
	}
	if err := r.Edit("File(file00000)", trajectory.Edit{}, editor, later); !errors.Is(err, trajectory.ErrUnknownNode) {
		t.Errorf("an edit of nothing: got %v", err)
	}
}
