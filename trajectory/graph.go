package trajectory

import (
	"fmt"
	"slices"
)

// Graph has the nodes and edges of one agent's rounds, and the bridges between rounds. It is an immutable copy.
type Graph struct {
	Key   // the latest round
	Nodes []Node
	// Edges has the bridges, whose relation is continues_to, after the edges of the round that they leave.
	Edges  []Edge
	Rounds []RoundMark
}

// RoundMark marks the start of a round in a graph and the ends of its active branches.
type RoundMark struct {
	Round   int  `json:"round"`
	Initial ID   `json:"initial_pt"`
	Current []ID `json:"current_pt"`
}

// JoinRounds makes one graph of the rounds of an agent in a session. The leaves of each round are joined to the
// initial node of the next round with nodes by continues_to edges. The records may be in any order; two of the same
// round, or of different agents, are an error.
func JoinRounds(records ...Record) (*Graph, error) {
	list := clone(records)
	slices.SortFunc(list, func(a, b Record) int { return compareKeys(a.Key, b.Key) })
	g := &Graph{Nodes: []Node{}, Edges: []Edge{}, Rounds: []RoundMark{}}
	seen := map[ID]int{}
	var last *Record
	for i := range list {
		r := list[i].Clone()
		if i > 0 && (r.User != g.User || r.Session != g.Session || r.Sub != g.Sub || r.Round == g.Round) {
			return nil, fmt.Errorf("join %s and %s: the rounds must be of one agent in one session", g.Key, r.Key)
		}
		for _, n := range r.Nodes {
			if round, twice := seen[n.ID]; twice {
				return nil, fmt.Errorf("join %s: the node %s is also in round %d", r.Key, n.ID, round)
			}
			seen[n.ID] = r.Round
		}
		g.Key = r.Key
		g.Nodes = append(g.Nodes, r.Nodes...)
		g.Rounds = append(g.Rounds, RoundMark{Round: r.Round, Initial: r.Initial, Current: r.Current})
		if r.Initial != "" {
			g.Edges = append(g.Edges, bridges(last, r.Initial)...)
			last = &r
		}
		g.Edges = append(g.Edges, r.Edges...)
	}
	return g, nil
}

// bridges returns the edges from the leaves of a round to the start of the next one.
func bridges(from *Record, to ID) []Edge {
	if from == nil {
		return nil
	}
	var out []Edge
	for _, leaf := range from.Leaves() {
		out = append(out, Edge{Source: leaf, Target: to, Relationship: ContinuesTo})
	}
	return out
}

// splitRounds returns the records that a graph was joined from, without messages.
func (g *Graph) splitRounds() []Record {
	at := make(map[int]int, len(g.Rounds))
	out := make([]Record, len(g.Rounds))
	for i, m := range g.Rounds {
		at[m.Round] = i
		out[i] = Record{Key: g.Key, Initial: m.Initial, Current: m.Current}
		out[i].Round = m.Round
	}
	home := make(map[ID]int, len(g.Nodes))
	for _, n := range g.Nodes {
		home[n.ID] = at[n.Round]
		r := &out[at[n.Round]]
		r.Nodes = append(r.Nodes, n)
	}
	for _, e := range g.Edges {
		if e.Relationship != ContinuesTo {
			r := &out[home[e.Source]]
			r.Edges = append(r.Edges, e)
		}
	}
	return out
}

// Active returns only the active branches: in each round the pointers and their ancestors, with rounds joined again.
// A round without pointers keeps its initial node, so that the graph stays connected.
func (g *Graph) Active() *Graph {
	rounds := g.splitRounds()
	for i := range rounds {
		rounds[i] = rounds[i].active()
	}
	out, err := JoinRounds(rounds...)
	if err != nil {
		return g // a graph that was joined once can be joined again
	}
	out.Key = g.Key
	return out
}

func (r Record) active() Record {
	from := make(map[ID][]ID, len(r.Nodes))
	for _, e := range r.Edges {
		from[e.Target] = append(from[e.Target], e.Source)
	}
	keep := map[ID]bool{}
	todo := clone(r.Current)
	if r.Initial != "" {
		todo = append(todo, r.Initial)
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !keep[id] {
			keep[id] = true
			todo = append(todo, from[id]...)
		}
	}
	nodes, edges := r.Nodes, r.Edges
	r.Nodes, r.Edges = nil, nil
	for _, n := range nodes {
		if keep[n.ID] {
			r.Nodes = append(r.Nodes, n)
		}
	}
	for _, e := range edges {
		if keep[e.Source] && keep[e.Target] {
			r.Edges = append(r.Edges, e)
		}
	}
	return r
}

// OnlyRound returns one round of the graph, without bridges. The error for a missing round lists the rounds.
func (g *Graph) OnlyRound(round int) (*Graph, error) {
	have := []int{}
	for _, r := range g.splitRounds() {
		if r.Round == round {
			return JoinRounds(r)
		}
		have = append(have, r.Round)
	}
	return nil, fmt.Errorf("session %s has no trajectory of round %d; it has rounds %v", g.Session, round, have)
}

// Leaves returns the nodes without outgoing edges, in order.
func (g *Graph) Leaves() []ID { return Record{Nodes: g.Nodes, Edges: g.Edges}.Leaves() }

// Acyclic reports whether the graph has no cycle.
func (g *Graph) Acyclic() bool { return cycle(g.Nodes, g.Edges) == "" }
