package trajectory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Recorder records the trajectory of one round of one agent. It is safe for concurrent use; each call takes effect
// completely or not at all.
type Recorder struct {
	key     Key
	storage Storage // nil stores nothing
	now     func() time.Time
	// earlier is the latest earlier round with nodes, nil if there is none.
	earlier *Record

	mu          sync.Mutex
	record      Record       // mu
	recordIndex *recordIndex // mu; of record
	// currentOutdated: record.Current is not what recordIndex.pointers are; see current.
	currentOutdated bool // mu
	revision        int  // mu; incremented by each change
	supersededBy    int  // mu; the round that was started after this one, 0 for none

	saving sync.Mutex // serializes saves
	saved  int        // saving and mu; the stored revision
}

// newRecorder continues a stored round, or starts it.
func newRecorder(stored Record, earlier *Record, s Storage, now func() time.Time) *Recorder {
	r := &Recorder{
		key: stored.Key, storage: s, now: now, earlier: earlier, record: stored.Clone(),
	}
	r.recordIndex = newIndex(&r.record)
	return r
}

// Key returns the key of the round.
func (r *Recorder) Key() Key { return r.key }

// NewNode describes a node to be added.
type NewNode struct {
	Type        Type           `json:"type"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Attributes  map[string]any `json:"attributes,omitempty"`
	// After are its predecessors, nodes of this round; by default the active branch pointers. A query has none.
	After []ID `json:"after,omitempty"`
	// Relation is the relation of the edges from all predecessors, "" for the inferred one; Link adds edges with
	// other relations.
	Relation Relation    `json:"relation,omitempty"`
	Pointer  Pointer     `json:"pointer,omitempty"`
	By       Attribution `json:"-"`
	At       time.Time   `json:"-"` // zero means now
}

// Pointer says how a new node changes the active branch pointers.
type Pointer int

// The changes of the pointers.
const (
	// PointerAuto means PointerAdvance for a Query, a State and an Action, and PointerKeep for data.
	PointerAuto Pointer = iota
	// PointerAdvance replaces the predecessors with the node.
	PointerAdvance
	// PointerAppend adds the node and keeps its predecessors, which starts a branch.
	PointerAppend
	// PointerKeep changes nothing.
	PointerKeep
)

// The errors of recorders.
var (
	// ErrSecondQuery: the round has a query, or was started without one.
	ErrSecondQuery = errors.New("a round has at most one query, as its first node")
	// ErrOlderRound: a predecessor belongs to another round.
	ErrOlderRound = errors.New("belongs to an earlier round")
	// ErrLaterRound: a later round has been started, which continues the numbers of this one.
	ErrLaterRound = errors.New("the round has ended and accepts no more nodes")
	// ErrUnknownNode: the node does not exist.
	ErrUnknownNode = errors.New("no such node in this round")
	// ErrCycle: the edge would close a cycle.
	ErrCycle = errors.New("the edge would close a cycle")
	// ErrAlreadyLinked: there is an edge between the two nodes with another relation.
	ErrAlreadyLinked = errors.New("the two nodes are linked by another relation")
	// ErrUnknownType: the node type does not exist.
	ErrUnknownType = errors.New("the node type does not exist")
)

// Add adds a node with the edges from its predecessors and returns its ID. A query is joined to the leaves of the
// previous round, see Graph. Any other node needs a predecessor, unless it is the first of a round without query.
func (r *Recorder) Add(n NewNode) (ID, error) {
	attrs, err := copyAttributes(n.Attributes)
	if err != nil {
		return "", fmt.Errorf("add %s: %w", n.Type, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := r.add(n, attrs)
	if err != nil {
		return "", fmt.Errorf("add %s: %w", n.Type, err)
	}
	return id, nil
}

// add adds a node; mu is held.
func (r *Recorder) add(n NewNode, attrs Attributes) (ID, error) {
	if !n.Type.IsValid() {
		return "", fmt.Errorf("%q: %w", string(n.Type), ErrUnknownType)
	}
	if n.Pointer < PointerAuto || n.Pointer > PointerKeep {
		return "", fmt.Errorf("the pointer mode %d does not exist", n.Pointer)
	}
	if r.supersededBy > 0 {
		return "", fmt.Errorf("%s: round %d has started: %w", r.key, r.supersededBy, ErrLaterRound)
	}
	id := MakeID(n.Type, r.recordIndex.nextNumber[n.Type])
	after, edges, err := r.newEdges(id, n)
	if err != nil {
		return "", err
	}
	r.recordIndex.nextNumber[n.Type]++
	node := Node{
		ID: id, Type: n.Type, Round: r.key.Round, Sub: r.key.Sub, Name: n.Name, Description: n.Description,
		Attributes: attrs, By: n.By, Created: r.timeOrNow(n.At), Version: 1, History: History{},
	}
	r.recordIndex.addNode(node, len(r.record.Nodes))
	r.record.Nodes = append(r.record.Nodes, node)
	for _, e := range edges {
		r.addEdge(e)
	}
	r.movePointers(id, n, after)
	r.revision++
	return id, nil
}

// newEdges returns the predecessors of a new node and the edges from them.
func (r *Recorder) newEdges(id ID, n NewNode) ([]ID, []Edge, error) {
	if n.Type == Query {
		if len(r.record.Nodes) > 0 {
			return nil, nil, fmt.Errorf("%s begins with %s: %w", r.key, r.record.Initial, ErrSecondQuery)
		}
		if len(n.After) > 0 {
			_, err := ResolveRelation(n.After[0], id, n.Relation)
			return nil, nil, err
		}
		return nil, nil, nil
	}
	after := Distinct(n.After)
	if len(after) == 0 {
		after = r.current()
	}
	if len(after) == 0 && len(r.record.Nodes) > 0 {
		return nil, nil, errors.New("the round has no active branch: give the predecessors")
	}
	var edges []Edge
	for _, from := range after {
		if err := r.checkOwnNode(from); err != nil {
			return nil, nil, err
		}
		relation, err := ResolveRelation(from, id, n.Relation)
		if err != nil {
			return nil, nil, err
		}
		edges = append(edges, Edge{Source: from, Target: id, Relationship: relation})
	}
	return after, edges, nil
}

// checkOwnNode returns an error for an ID that is not a node of this round.
func (r *Recorder) checkOwnNode(id ID) error {
	if _, ok := r.recordIndex.nodes[id]; ok {
		return nil
	}
	t, number, err := id.Parse()
	if err != nil {
		return err
	}
	if number < r.record.First[t] {
		return fmt.Errorf("%s %w than %s; edges between rounds are added automatically", id, ErrOlderRound, r.key)
	}
	return fmt.Errorf("%s: %w", id, ErrUnknownNode)
}

func (r *Recorder) addEdge(e Edge) {
	r.recordIndex.addEdge(e)
	r.record.Edges = append(r.record.Edges, e)
}

// movePointers updates the pointers for a new node.
func (r *Recorder) movePointers(id ID, n NewNode, after []ID) {
	if r.record.Initial == "" {
		r.record.Initial = id
	}
	way := n.Pointer
	if way == PointerAuto {
		way = PointerAdvance
		if n.Type.IsData() {
			way = PointerKeep
		}
	}
	if way == PointerKeep {
		return
	}
	pointers := r.recordIndex.pointers
	switch {
	case way == PointerAdvance && len(n.After) == 0: // after are the pointers
		clear(pointers)
	case way == PointerAdvance:
		for _, p := range after {
			delete(pointers, p)
		}
	}
	pointers[id] = true
	r.currentOutdated = true
}

// current returns the active branch pointers, which callers must not change; mu is held. They
// are put in order when they are read, because a graph with many branches moves them
// often.
func (r *Recorder) current() []ID {
	if r.currentOutdated {
		r.record.Current = slices.SortedFunc(maps.Keys(r.recordIndex.pointers), compareIDs)
		r.currentOutdated = false
	}
	return r.record.Current
}

// copyRecord returns the round as it is now; mu is held.
func (r *Recorder) copyRecord() Record {
	r.current()
	return r.record.Clone()
}

// Link adds an edge between two nodes of the round. An edge that exists already is not an error.
func (r *Recorder) Link(from, to ID, relation Relation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.link(from, to, relation); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	return nil
}

func (r *Recorder) link(from, to ID, relation Relation) error {
	if err := errors.Join(r.checkOwnNode(from), r.checkOwnNode(to)); err != nil {
		return err
	}
	relation, err := ResolveRelation(from, to, relation)
	if err != nil {
		return err
	}
	if have, linked := r.recordIndex.edges[[2]ID{from, to}]; linked {
		if have != relation {
			return fmt.Errorf("%s -> %s is %s: %w", from, to, have, ErrAlreadyLinked)
		}
		return nil
	}
	if r.recordIndex.reaches(to, from) {
		return fmt.Errorf("%s -> %s: %w", from, to, ErrCycle)
	}
	r.addEdge(Edge{Source: from, Target: to, Relationship: relation})
	r.revision++
	return nil
}

// Edit changes a node and stores the replaced values in the node's history. An edit that changes nothing makes no
// version. A zero at means now.
func (r *Recorder) Edit(id ID, e Edit, by Attribution, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.edit(id, e, by, at); err != nil {
		return fmt.Errorf("edit %s: %w", id, err)
	}
	return nil
}

func (r *Recorder) edit(id ID, e Edit, by Attribution, at time.Time) error {
	if err := r.checkOwnNode(id); err != nil {
		return err
	}
	n := &r.record.Nodes[r.recordIndex.nodes[id]]
	after, err := applyEdit(*n, e, r.timeOrNow(at), by)
	if err != nil {
		return err
	}
	if after.Version != n.Version {
		*n = after
		r.revision++
	}
	return nil
}

// SetPointers sets the active branch pointers, to nodes of this round.
func (r *Recorder) SetPointers(ids ...ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if err := r.checkOwnNode(id); err != nil {
			return fmt.Errorf("point: %w", err)
		}
	}
	if current := Distinct(ids); !slices.Equal(current, r.current()) {
		r.record.Current = current
		clear(r.recordIndex.pointers)
		for _, id := range current {
			r.recordIndex.pointers[id] = true
		}
		r.revision++
	}
	return nil
}

// Node returns a node of this round.
func (r *Recorder) Node(id ID) (Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkOwnNode(id); err != nil {
		return Node{}, err
	}
	return r.record.Nodes[r.recordIndex.nodes[id]].clone(), nil
}

// Initial returns the query, or the first node of a round without one; "" if there is no node.
func (r *Recorder) Initial() ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Initial
}

// maxDropAncestors is the maximum number of nodes that DropAncestors compares with each other.
const maxDropAncestors = 32

// DropAncestors returns the distinct nodes, in order, from which no path leads to another of them; if there are too
// many to compare, it returns all.
func (r *Recorder) DropAncestors(ids []ID) []ID {
	ids = Distinct(ids)
	if len(ids) > maxDropAncestors {
		return ids
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(clone(ids), func(id ID) bool {
		return slices.ContainsFunc(ids, func(other ID) bool { return other != id && r.recordIndex.reaches(id, other) })
	})
}

// FindData returns the node of a piece of data by its type and name, and whether there
// is one.
func (r *Recorder) FindData(t Type, name string) (ID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.recordIndex.data[dataKey{t, name}]
	return id, ok
}

// Clear removes everything from the round, which then starts again after the previous one. It is used to compute a
// trajectory again.
func (r *Recorder) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.record.Nodes)+len(r.record.Messages) == 0 {
		return
	}
	r.record = newRecord(r.key, r.earlier)
	r.recordIndex, r.currentOutdated = newIndex(&r.record), false
	r.revision++
}

// Ancestors returns at most that many nodes from which paths lead to a node, the nearest first.
func (r *Recorder) Ancestors(id ID, most int) []Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Node
	seen := map[ID]bool{id: true}
	at, known := r.recordIndex.nodes[id]
	if !known {
		return nil
	}
	for near := []int{at}; len(near) > 0 && len(out) < most; near = near[1:] {
		for _, i := range r.recordIndex.links[near[0]].in {
			if n := r.record.Nodes[i]; !seen[n.ID] && len(out) < most {
				seen[n.ID] = true
				out = append(out, n.clone())
				near = append(near, int(i))
			}
		}
	}
	return out
}

// Current returns the active branch pointers.
func (r *Recorder) Current() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return clone(r.current())
}

// Record returns the round as it would be stored now.
func (r *Recorder) Record() Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copyRecord()
}

// Graph returns this round joined to the latest earlier one. LoadGraph joins all stored rounds.
func (r *Recorder) Graph() *Graph {
	own := r.Record()
	records := []Record{own}
	if r.earlier != nil {
		records = append(records, *r.earlier)
	}
	g, err := JoinRounds(records...)
	if err != nil { // the pool has checked that the rounds differ
		return &Graph{Key: r.key, Nodes: own.Nodes, Edges: own.Edges}
	}
	return g
}

// supersede makes the round refuse further nodes, because a later round has been started.
func (r *Recorder) supersede(later int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.supersededBy == 0 || later < r.supersededBy {
		r.supersededBy = later
	}
}

// recordUnlessEmpty returns the round, nil if it has no nodes.
func (r *Recorder) recordUnlessEmpty() *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.record.Nodes) == 0 {
		return nil
	}
	own := r.copyRecord()
	return &own
}

func (r *Recorder) timeOrNow(at time.Time) time.Time {
	if at.IsZero() {
		at = r.now()
	}
	return at.Round(0).UTC() // without monotonic clock reading: a stored node equals the live one
}

// newRecord returns an empty round whose numbers continue those of the previous one.
func newRecord(k Key, earlier *Record) Record {
	r := Record{Key: k, First: map[Type]int{}}
	if earlier != nil {
		r.First = maps.Clone(earlier.NextNumbers())
	}
	return r.Clone()
}
