package trajectory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
)

// Key identifies a trajectory.
type Key struct {
	User    string `json:"user"`
	Session string `json:"session"`
	Round   int    `json:"round"` // from 1
	Sub     int    `json:"sub"`   // 0 is the main agent
}

// String returns the key for messages.
func (k Key) String() string {
	s := fmt.Sprintf("session %s round %d", k.Session, k.Round)
	if k.Sub > 0 {
		s += fmt.Sprintf(" sub-agent %d", k.Sub)
	}
	if k.User != "" {
		s += " of " + k.User
	}
	return s
}

// ErrKey means that a key has no session, a round below 1 or a sub-agent below 0.
var ErrKey = errors.New("a trajectory needs a session, a round from 1 and a sub-agent from 0")

// Check returns ErrKey for an invalid key.
func (k Key) Check() error {
	if k.Session == "" || k.Round < 1 || k.Sub < 0 {
		return fmt.Errorf("%s: %w", k, ErrKey)
	}
	return nil
}

// compareKeys orders by user, session, sub-agent and round.
func compareKeys(a, b Key) int {
	return cmp.Or(
		cmp.Compare(a.User, b.User), cmp.Compare(a.Session, b.Session),
		cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Round, b.Round))
}

// Edge connects two nodes; there is at most one between two nodes.
type Edge struct {
	Source       ID       `json:"source"`
	Target       ID       `json:"target"`
	Relationship Relation `json:"relationship"`
}

// Record is one round of one agent as it is stored, without nodes and edges of other rounds.
type Record struct {
	Key
	// Agent is the path of the sub-agent in the flow, such as "research" or
	// "refine/write"; "" for the main agent.
	Agent string
	// Nodes and Edges are in the order of their creation.
	Nodes []Node
	Edges []Edge
	// Initial is the query, or the first node of a round without one; "" if there is no node.
	Initial ID
	// Current has the active branch pointers, a set in order of ID.
	Current []ID
	// First has the first number of the round's nodes of each type; the default is 0.
	First map[Type]int
	// Messages are those of the round, in order.
	Messages []convo.Message
}

// ErrRecord means that the data is not a valid round.
var ErrRecord = errors.New("is not a trajectory")

// Check returns an ErrRecord for an invalid record from outside: ids, types, relations, dangling edges and pointers,
// a second query, a cycle.
func (r Record) Check() error {
	if err := r.Key.Check(); err != nil {
		return err
	}
	index, err := r.checkNodes()
	if err != nil {
		return err
	}
	if err := r.checkEdges(index); err != nil {
		return err
	}
	if _, ok := index[r.Initial]; r.Initial != "" && !ok {
		return r.invalid("the initial node %s does not exist", r.Initial)
	}
	for _, id := range r.Current {
		if _, ok := index[id]; !ok {
			return r.invalid("the pointer %s refers to no node", id)
		}
	}
	return nil
}

func (r Record) invalid(format string, args ...any) error {
	return fmt.Errorf("%s %w: %s", r.Key, ErrRecord, fmt.Sprintf(format, args...))
}

func (r Record) checkNodes() (map[ID]int, error) {
	index := make(map[ID]int, len(r.Nodes))
	var query ID
	for i, n := range r.Nodes {
		t, number, err := n.ID.Parse()
		switch {
		case err != nil:
			return nil, r.invalid("%v", err)
		case t != n.Type:
			return nil, r.invalid("%s has the type %s", n.ID, n.Type)
		case number < r.First[t]:
			return nil, r.invalid("%s belongs to an earlier round, whose numbers end before %d", n.ID, r.First[t])
		case n.Round != r.Round || n.Sub != r.Sub:
			return nil, r.invalid("%s belongs to round %d, sub-agent %d", n.ID, n.Round, n.Sub)
		case t == Query && query != "":
			return nil, r.invalid("%s and %s: a round has at most one query", query, n.ID)
		}
		if _, twice := index[n.ID]; twice {
			return nil, r.invalid("%s occurs twice", n.ID)
		}
		if t == Query {
			query = n.ID
		}
		index[n.ID] = i
	}
	return index, nil
}

func (r Record) checkEdges(index map[ID]int) error {
	seen := make(map[[2]ID]bool, len(r.Edges))
	for _, e := range r.Edges {
		_, from := index[e.Source]
		_, to := index[e.Target]
		pair := [2]ID{e.Source, e.Target}
		switch {
		case !from || !to:
			return r.invalid("%s -> %s: one of the two does not exist", e.Source, e.Target)
		case seen[pair]:
			return r.invalid("%s -> %s occurs twice", e.Source, e.Target)
		case e.Relationship == "":
			return r.invalid("%s -> %s has no relationship", e.Source, e.Target)
		}
		if _, err := ResolveRelation(e.Source, e.Target, e.Relationship); err != nil {
			return r.invalid("%v", err)
		}
		seen[pair] = true
	}
	if at := cycle(r.Nodes, r.Edges); at != "" {
		return r.invalid("%s is on a cycle", at)
	}
	return nil
}

// cycle returns a node on or behind a cycle, "" if there is none.
func cycle(nodes []Node, edges []Edge) ID {
	open := make(map[ID]int, len(nodes))
	next := make(map[ID][]ID, len(nodes))
	for _, e := range edges {
		open[e.Target]++
		next[e.Source] = append(next[e.Source], e.Target)
	}
	var free []ID
	for _, n := range nodes {
		if open[n.ID] == 0 {
			free = append(free, n.ID)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, to := range next[id] {
			if open[to]--; open[to] == 0 {
				free = append(free, to)
			}
		}
	}
	for _, n := range nodes {
		if open[n.ID] > 0 {
			return n.ID
		}
	}
	return ""
}

// Leaves returns the nodes without outgoing edges, in order.
func (r Record) Leaves() []ID {
	left := make(map[ID]bool, len(r.Nodes))
	for _, e := range r.Edges {
		left[e.Source] = true
	}
	var out []ID
	for _, n := range r.Nodes {
		if !left[n.ID] {
			out = append(out, n.ID)
		}
	}
	return out
}

// NextNumbers returns the first number of each type for the next round.
func (r Record) NextNumbers() map[Type]int {
	next := maps.Clone(r.First)
	if next == nil {
		next = map[Type]int{}
	}
	for _, n := range r.Nodes {
		if t, number, err := n.ID.Parse(); err == nil {
			next[t] = max(next[t], number+1)
		}
	}
	return next
}

// Clone returns a record that shares no node, edge or list with r; messages are
// immutable and shared.
func (r Record) Clone() Record {
	nodes := make([]Node, len(r.Nodes))
	for i, n := range r.Nodes {
		nodes[i] = n.clone()
	}
	r.Nodes = nodes
	r.Edges, r.Current, r.Messages = clone(r.Edges), clone(r.Current), clone(r.Messages)
	r.First = maps.Clone(r.First)
	if r.First == nil {
		r.First = map[Type]int{}
	}
	return r
}

// clone copies a list; nil becomes an empty list.
func clone[T any](list []T) []T {
	return append(make([]T, 0, len(list)), list...)
}

// compareIDs orders by type and number. Numbers have leading zeros only up to five digits, so that within a type the
// longer one is the higher one.
func compareIDs(a, b ID) int {
	if len(a) != len(b) {
		if t, _, ok := strings.Cut(string(a), "("); ok && strings.HasPrefix(string(b), t+"(") {
			return cmp.Compare(len(a), len(b))
		}
	}
	return strings.Compare(string(a), string(b))
}

// Distinct returns the distinct IDs in order, without changing the list.
func Distinct(ids []ID) []ID {
	out := clone(ids)
	slices.SortFunc(out, compareIDs)
	return slices.Compact(out)
}

// SortKeys returns the distinct keys in the order of storages. It may reuse the list.
func SortKeys(keys []Key) []Key {
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}
