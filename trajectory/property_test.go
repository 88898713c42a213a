package trajectory_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/trajectory"
)

// naive is a session as one would write it down by hand: lists, and nothing
// that is remembered to be fast.
type naive struct {
	round   int
	nodes   []trajectory.ID // of all rounds
	home    map[trajectory.ID]int
	values  map[trajectory.ID][]any // of one attribute, oldest first
	edges   []trajectory.Edge       // of all rounds, without bridges
	current map[int]map[trajectory.ID]bool
}

func (m *naive) own() []trajectory.ID {
	return slices.DeleteFunc(slices.Clone(m.nodes), func(id trajectory.ID) bool { return m.home[id] != m.round })
}

func (m *naive) leads(from, to trajectory.ID) bool {
	if from == to {
		return true
	}
	for _, e := range m.edges {
		if e.Source == from && m.leads(e.Target, to) {
			return true
		}
	}
	return false
}

func (m *naive) fresh(t trajectory.Type) trajectory.ID {
	for n := 0; ; n++ {
		if id := trajectory.MakeID(t, n); !slices.Contains(m.nodes, id) {
			return id
		}
	}
}

// relation returns what an edge would be, "" if it must be refused.
func (m *naive) relation(from, to trajectory.ID, given trajectory.Relation) trajectory.Relation {
	f, t := from.Type(), to.Type()
	thought := f == trajectory.Query || f == trajectory.State
	switch {
	case t == trajectory.Query:
		return ""
	case given != "":
		return given
	case t == trajectory.Action && thought:
		return "triggers"
	case t == trajectory.State && (thought || f == trajectory.Action):
		return "has_conclusion"
	}
	return ""
}

// add says what Add must do: the ID of the new node, or "" for an error.
func (m *naive) add(t trajectory.Type, after []trajectory.ID, given trajectory.Relation, pointer trajectory.Pointer) trajectory.ID {
	own := m.own()
	id := m.fresh(t)
	if t == trajectory.Query && (len(own) > 0 || len(after) > 0) {
		return ""
	}
	if len(after) == 0 && t != trajectory.Query {
		for p := range m.current[m.round] {
			after = append(after, p)
		}
		if len(after) == 0 && len(own) > 0 {
			return ""
		}
	}
	var edges []trajectory.Edge
	for _, from := range after {
		r := m.relation(from, id, given)
		if r == "" || !slices.Contains(own, from) {
			return ""
		}
		if e := (trajectory.Edge{Source: from, Target: id, Relationship: r}); !slices.Contains(edges, e) {
			edges = append(edges, e)
		}
	}
	m.nodes, m.home[id], m.values[id] = append(m.nodes, id), m.round, []any{int64(0)}
	m.edges = append(m.edges, edges...)
	m.move(id, after, pointer)
	return id
}

// move is what becomes of the pointers.
func (m *naive) move(id trajectory.ID, after []trajectory.ID, pointer trajectory.Pointer) {
	if pointer == trajectory.PointerAuto {
		pointer = trajectory.PointerKeep
		if !id.Type().IsData() {
			pointer = trajectory.PointerAdvance
		}
	}
	if pointer == trajectory.PointerAdvance {
		for _, from := range after {
			delete(m.current[m.round], from)
		}
	}
	if pointer != trajectory.PointerKeep {
		m.current[m.round][id] = true
	}
}

// link says whether Link must succeed, and does it.
func (m *naive) link(from, to trajectory.ID, given trajectory.Relation) bool {
	own := m.own()
	r := m.relation(from, to, given)
	if r == "" || !slices.Contains(own, from) || !slices.Contains(own, to) {
		return false
	}
	for _, e := range m.edges {
		if e.Source == from && e.Target == to {
			return e.Relationship == r
		}
	}
	if m.leads(to, from) {
		return false
	}
	m.edges = append(m.edges, trajectory.Edge{Source: from, Target: to, Relationship: r})
	return true
}

// bridged returns every edge of the session, those between rounds worked out from
// nothing but who has a way out.
func (m *naive) bridged() []trajectory.Edge {
	out := slices.Clone(m.edges)
	var last []trajectory.ID
	for round := 1; round <= m.round; round++ {
		var own []trajectory.ID
		for _, id := range m.nodes {
			if m.home[id] == round {
				own = append(own, id)
			}
		}
		if len(own) == 0 {
			continue
		}
		for _, id := range last {
			if !slices.ContainsFunc(m.edges, func(e trajectory.Edge) bool { return e.Source == id }) {
				out = append(out, trajectory.Edge{Source: id, Target: own[0], Relationship: "continues_to"})
			}
		}
		last = own
	}
	return out
}

// walk does operations on a session and on the model of it.
type walk struct {
	*naive
	pool    *trajectory.RecorderPool
	r       *trajectory.Recorder
	release func(context.Context) error
}

func TestRandomOperationsMatchANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := memory()
		w := &walk{
			naive: &naive{home: map[trajectory.ID]int{}, values: map[trajectory.ID][]any{}, current: map[int]map[trajectory.ID]bool{}},
			pool:  trajectory.NewRecorderPool(s, clock),
		}
		w.begin(t, 1)
		t.Repeat(map[string]func(*rapid.T){
			"add": w.doAdd, "link": w.doLink, "edit": w.doEdit, "point": w.doPoint,
			"next round":         func(t *rapid.T) { w.begin(t, w.round+1) },
			"the same one again": func(t *rapid.T) { w.begin(t, w.round) },
			"":                   func(t *rapid.T) { compareRound(t, w.r, w.naive) },
		})
		if err := w.release(t.Context()); err != nil {
			t.Fatal(err)
		}
		compareSession(t, s, w.naive)
	})
}

// begin releases the round and opens another, or the same again.
func (w *walk) begin(t *rapid.T, number int) {
	if w.release != nil {
		if err := w.release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.r, w.release, err = w.pool.Open(t.Context(), round(number)); err != nil {
		t.Fatal(err)
	}
	w.round = number
	if w.current[number] == nil {
		w.current[number] = map[trajectory.ID]bool{}
	}
}

// some is any node of the session, and now and then none.
func (w *walk) some(t *rapid.T, label string) trajectory.ID {
	if len(w.nodes) == 0 || rapid.IntRange(0, 30).Draw(t, "unknown") == 0 {
		return "State(state00500)"
	}
	return rapid.SampledFrom(w.nodes).Draw(t, label)
}

func given(t *rapid.T) trajectory.Relation {
	return rapid.SampledFrom([]trajectory.Relation{"", "", "", "refers_to", "made_up"}).Draw(t, "relation")
}

func (w *walk) doAdd(t *rapid.T) {
	n := trajectory.NewNode{
		Type: rapid.SampledFrom(trajectory.Types()).Draw(t, "type"), Relation: given(t),
		Pointer: trajectory.Pointer(rapid.IntRange(0, 3).Draw(t, "pointer")), Attributes: map[string]any{"v": 0},
	}
	for range rapid.IntRange(0, 3).Draw(t, "predecessors") {
		n.After = append(n.After, w.some(t, "after"))
	}
	id, err := w.r.Add(n)
	if want := w.add(n.Type, n.After, n.Relation, n.Pointer); id != want || (err == nil) != (want != "") {
		t.Fatalf("add %+v: %q, %v, want %q", n, id, err, want)
	}
}

func (w *walk) doLink(t *rapid.T) {
	from, to, relation := w.some(t, "from"), w.some(t, "to"), given(t)
	err := w.r.Link(from, to, relation)
	if want := w.link(from, to, relation); (err == nil) != want {
		t.Fatalf("link %s -%s-> %s: %v, want %v", from, relation, to, err, want)
	}
}

func (w *walk) doEdit(t *rapid.T) {
	id, v := w.some(t, "node"), int64(rapid.IntRange(0, 3).Draw(t, "value"))
	err := w.r.Edit(id, trajectory.Edit{Set: map[string]any{"v": v}}, trajectory.Attribution{}, now)
	own := slices.Contains(w.own(), id)
	if own != (err == nil) {
		t.Fatalf("edit %s: %v", id, err)
	}
	if old := w.values[id]; own && old[len(old)-1] != any(v) {
		w.values[id] = append(old, v)
	}
}

func (w *walk) doPoint(t *rapid.T) {
	id := w.some(t, "node")
	err := w.r.SetPointers(id)
	own := slices.Contains(w.own(), id)
	if own != (err == nil) {
		t.Fatalf("point %s: %v", id, err)
	}
	if own {
		w.current[w.round] = map[trajectory.ID]bool{id: true}
	}
}

func compareRound(t *rapid.T, r *trajectory.Recorder, m *naive) {
	record := r.Record()
	if err := record.Check(); err != nil {
		t.Fatal(err)
	}
	var ids []trajectory.ID
	for _, n := range record.Nodes {
		ids = append(ids, n.ID)
		if got, want := versions(n), m.values[n.ID]; !reflect.DeepEqual(got, want) {
			t.Fatalf("%s had the values %v, want %v", n.ID, got, want)
		}
	}
	if !slices.Equal(ids, m.own()) {
		t.Fatalf("the round has %v, want %v", ids, m.own())
	}
	current := map[trajectory.ID]bool{}
	for _, id := range r.Current() {
		current[id] = true
	}
	if !reflect.DeepEqual(current, m.current[m.round]) {
		t.Fatalf("the pointers are %v, want %v", current, m.current[m.round])
	}
}

// versions returns all values that a node had, oldest first.
func versions(n trajectory.Node) []any {
	var out []any
	for v := 1; v <= n.Version; v++ {
		old, _ := n.AtVersion(v)
		out = append(out, old.Attributes["v"])
	}
	return out
}

func compareSession(t *rapid.T, s trajectory.Storage, m *naive) {
	if len(m.nodes) == 0 {
		return
	}
	g, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	text := func(edges []trajectory.Edge) []string {
		var out []string
		for _, e := range edges {
			out = append(out, fmt.Sprint(e))
		}
		slices.Sort(out)
		return out
	}
	if got, want := text(g.Edges), text(m.bridged()); !slices.Equal(got, want) {
		t.Fatalf("the session's edges are\n%v, want\n%v", got, want)
	}
	if connected(g) != 1 || unreached(g) != 0 || !sortable(g) {
		t.Fatalf("the session is in %d pieces, %d nodes are not reached", connected(g), unreached(g))
	}
	if a := g.Active(); connected(a) != 1 || !sortable(a) {
		t.Fatalf("its active branches are in %d pieces", connected(a))
	}
}
