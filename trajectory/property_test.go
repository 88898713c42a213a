package trajectory_test

import (
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

// relation is what an edge would be, "" where it must be refused.
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
	if pointer == trajectory.Auto {
		pointer = trajectory.Keep
		if !t.Data() {
			pointer = trajectory.Advance
		}
	}
	if pointer == trajectory.Advance {
		for _, from := range after {
			delete(m.current[m.round], from)
		}
	}
	if pointer != trajectory.Keep {
		m.current[m.round][id] = true
	}
	return id
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

// bridged is every edge of the session, those between rounds worked out from
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

func TestRandomOperationsDoWhatANaiveModelDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := memory()
		book := trajectory.NewBook(s, clock)
		m := &naive{home: map[trajectory.ID]int{}, values: map[trajectory.ID][]any{}, current: map[int]map[trajectory.ID]bool{}}
		var r *trajectory.Recorder
		var release func() error
		begin := func(number int) {
			if release != nil {
				if err := release(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			var done func() error
			r, done, err = openRapid(t, book, number)
			if err != nil {
				t.Fatal(err)
			}
			release = done
			m.round = number
			if m.current[number] == nil {
				m.current[number] = map[trajectory.ID]bool{}
			}
		}
		begin(1)
		some := func(label string) trajectory.ID {
			if len(m.nodes) == 0 || rapid.IntRange(0, 30).Draw(t, "unknown") == 0 {
				return "State(state00500)"
			}
			return rapid.SampledFrom(m.nodes).Draw(t, label)
		}
		given := rapid.SampledFrom([]trajectory.Relation{"", "", "", "refers_to", "made_up"})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := trajectory.New{
					Type: rapid.SampledFrom(trajectory.Types()).Draw(t, "type"), Relation: given.Draw(t, "relation"),
					Pointer: trajectory.Pointer(rapid.IntRange(0, 3).Draw(t, "pointer")), Attributes: map[string]any{"v": 0},
				}
				for range rapid.IntRange(0, 3).Draw(t, "predecessors") {
					n.After = append(n.After, some("after"))
				}
				id, err := r.Add(n)
				if want := m.add(n.Type, n.After, n.Relation, n.Pointer); id != want || (err == nil) != (want != "") {
					t.Fatalf("add %+v: %q, %v, want %q", n, id, err, want)
				}
			},
			"link": func(t *rapid.T) {
				from, to, relation := some("from"), some("to"), given.Draw(t, "relation")
				err := r.Link(from, to, relation)
				if want := m.link(from, to, relation); (err == nil) != want {
					t.Fatalf("link %s -%s-> %s: %v, want %v", from, relation, to, err, want)
				}
			},
			"edit": func(t *rapid.T) {
				id, v := some("node"), int64(rapid.IntRange(0, 3).Draw(t, "value"))
				err := r.Edit(id, trajectory.Edit{Set: map[string]any{"v": v}}, trajectory.Attribution{}, now)
				if own := slices.Contains(m.own(), id); own != (err == nil) {
					t.Fatalf("edit %s: %v", id, err)
				} else if old := m.values[id]; own && old[len(old)-1] != any(v) {
					m.values[id] = append(old, v)
				}
			},
			"point": func(t *rapid.T) {
				id := some("node")
				err := r.Point(id)
				if own := slices.Contains(m.own(), id); own != (err == nil) {
					t.Fatalf("point %s: %v", id, err)
				} else if own {
					m.current[m.round] = map[trajectory.ID]bool{id: true}
				}
			},
			"next round":         func(*rapid.T) { begin(m.round + 1) },
			"the same one again": func(*rapid.T) { begin(m.round) },
			"": func(t *rapid.T) {
				compareRound(t, r, m)
			},
		})
		if err := release(); err != nil {
			t.Fatal(err)
		}
		compareSession(t, s, m)
	})
}

func openRapid(t *rapid.T, b *trajectory.Book, number int) (*trajectory.Recorder, func() error, error) {
	r, release, err := b.Open(t.Context(), round(number))
	return r, func() error { return release(t.Context()) }, err
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

// versions are all values that a node had, oldest first.
func versions(n trajectory.Node) []any {
	var out []any
	for v := 1; v <= n.Version; v++ {
		old, _ := n.At(v)
		out = append(out, old.Attributes["v"])
	}
	return out
}

func compareSession(t *rapid.T, s trajectory.Storage, m *naive) {
	if len(m.nodes) == 0 {
		return
	}
	g, err := trajectory.Load(t.Context(), s, "ann", "s", 0)
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
