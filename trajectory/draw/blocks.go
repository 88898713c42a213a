package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// connector is a line that is drawn from one block to another.
type connector struct {
	from, to int
	relation trajectory.Relation
	sources  []trajectory.ID
	targets  []trajectory.ID // more than one for lanes that were joined
	card     int             // height at which it leaves the block next to a card, -1 for below the block
}

// edgeTag is an edge that is written on a card instead of drawn.
type edgeTag struct {
	relation trajectory.Relation
	other    trajectory.ID
	name     string // label of the other node
	in       bool   // incoming
}

// place is the position of a node.
type place struct{ block, card int }

// blockRound is a round divided into blocks.
type blockRound struct {
	round
	index      map[trajectory.ID]int
	blocks     []block
	isHeader   []bool // for each block: it is in the header of the round
	places     []place
	connectors []connector
	tags       [][]edgeTag // for each node
}

func toBlocks(r round, m activity) *blockRound {
	f := &blockRound{round: r, index: make(map[trajectory.ID]int, len(r.nodes)), places: make([]place, len(r.nodes)), tags: make([][]edgeTag, len(r.nodes))}
	for i, n := range r.nodes {
		f.index[n.ID] = i
	}
	makers := f.parentEdges()
	children := make([][]int, len(r.nodes)) // indexes of edges
	for _, e := range makers {
		if e >= 0 {
			from := f.index[r.edges[e].Source]
			children[from] = append(children[from], e)
		}
	}
	for _, list := range children {
		slices.Sort(list)
	}
	for i, e := range makers {
		if e < 0 {
			b := block{}
			f.addSubtree(&b, i, -1, "", children)
			f.blocks = append(f.blocks, b)
			f.isHeader = append(f.isHeader, r.nodes[i].Type.IsData())
		}
	}
	f.indexPlaces()
	f.stackLanes(makers)
	f.indexPlaces()
	f.addConnectors(makers)
	for i := range f.blocks {
		for j := range f.blocks[i].cards {
			c := &f.blocks[i].cards[j]
			c.caption = captionOf(r.nodes[c.node], m, c.relation)
		}
	}
	return f
}

// parentEdges returns for each node the edge to its parent, -1 for the root of a block. The parent of data is what
// made it, that of a call its answer; a Tool has none, because calls everywhere refer to it.
func (f *blockRound) parentEdges() []int {
	out := make([]int, len(f.nodes))
	edges := make([]int, len(f.nodes)) // edges to a node
	for i := range out {
		out[i] = -1
	}
	for i, e := range f.edges {
		to := f.index[e.Target]
		edges[to]++
		n := &f.nodes[to]
		if n.Type.IsData() && n.Type != trajectory.Tool &&
			(out[to] < 0 || f.edges[out[to]].Relationship == trajectory.RefersTo && e.Relationship != trajectory.RefersTo) {
			out[to] = i
		}
		if f.isCallEdge(e) {
			out[to] = i
		}
	}
	for i, n := range f.nodes {
		if !n.Type.IsData() && edges[i] > 1 {
			out[i] = -1
		}
	}
	return out
}

// isCallEdge reports whether an edge leads from an answer to a call of it, or from a
// call to what it ran.
func (f *blockRound) isCallEdge(e trajectory.Edge) bool {
	from, to := &f.nodes[f.index[e.Source]], &f.nodes[f.index[e.Target]]
	kind := text(*from, trajectory.AttrKind)
	return e.Relationship == trajectory.Generates && to.Type == trajectory.Action && from.Type == trajectory.Action &&
		(kind == trajectory.KindAnswer || kind == trajectory.KindCall)
}

// addSubtree adds a node and its children to a block.
func (f *blockRound) addSubtree(b *block, node, parent int, by trajectory.Relation, children [][]int) {
	b.cards = append(b.cards, card{node: node, parent: parent, relation: by})
	at := len(b.cards) - 1
	for _, e := range children[node] {
		f.addSubtree(b, f.index[f.edges[e].Target], at, f.edges[e].Relationship, children)
	}
}

func (f *blockRound) indexPlaces() {
	for i := range f.blocks {
		for j, c := range f.blocks[i].cards {
			f.places[c.node] = place{i, j}
		}
	}
}

// addConnectors adds lines and tags for the edges that are not in a tree.
func (f *blockRound) addConnectors(makers []int) {
	type pair struct {
		from, to int
		relation trajectory.Relation
	}
	found := map[pair][]trajectory.Edge{}
	var order []pair
	for i, e := range f.edges {
		from, to := f.index[e.Source], f.index[e.Target]
		if makers[to] == i {
			continue
		}
		p := pair{f.places[from].block, f.places[to].block, e.Relationship}
		switch {
		case f.nodes[to].Type.IsData():
			f.tagFrom(e)
		case f.isHeader[p.from] || p.from == p.to:
			f.tagTo(e)
		default:
			if found[p] == nil {
				order = append(order, p)
			}
			found[p] = append(found[p], e)
		}
	}
	for _, p := range order {
		f.addLines(p.from, p.to, found[p])
	}
}

// tagFrom writes an edge on its source card, tagTo on its target card; nodes of other rounds have no card.
func (f *blockRound) tagFrom(e trajectory.Edge) {
	if i, ok := f.index[e.Source]; ok {
		f.tags[i] = append(f.tags[i], edgeTag{e.Relationship, e.Target, f.cardTitle(e.Target), false})
	}
}

func (f *blockRound) tagTo(e trajectory.Edge) {
	if i, ok := f.index[e.Target]; ok {
		f.tags[i] = append(f.tags[i], edgeTag{e.Relationship, e.Source, f.cardTitle(e.Source), true})
	}
}

// cardTitle returns the title of a node's card.
func (f *blockRound) cardTitle(id trajectory.ID) string {
	if i, ok := f.index[id]; ok {
		return wordOf(f.nodes[i])
	}
	return string(id.Type()) + " " + numberOf(id)
}

// addLines connects two blocks: one line from below the block if all of its ends are connected, otherwise one from
// each card.
func (f *blockRound) addLines(from, to int, edges []trajectory.Edge) {
	cards := f.blocks[from].cards
	led := map[int]bool{}
	for _, e := range edges {
		led[f.places[f.index[e.Source]].card] = true
	}
	covered := map[int]bool{} // an end, or the parent of one
	whole := true
	for _, end := range f.lastSteps(from) {
		found := false
		for at := end; at >= 0; at = cards[at].parent {
			covered[at] = true
			found = found || led[at]
		}
		whole = whole && found
	}
	var ties []connector
	byCard := map[int]int{} // indexes into ties
	ends := map[connectorEnd]bool{}
	for _, e := range edges {
		at := f.places[f.index[e.Source]].card
		if whole && covered[at] {
			at = -1
		}
		i, known := byCard[at]
		if !known {
			i = len(ties)
			byCard[at] = i
			ties = append(ties, connector{from: from, to: to, relation: e.Relationship, card: at})
		}
		t := &ties[i]
		if end := (connectorEnd{i, true, e.Source}); !ends[end] {
			ends[end] = true
			t.sources = append(t.sources, e.Source)
		}
		if end := (connectorEnd{i, false, e.Target}); !ends[end] {
			ends[end] = true
			t.targets = append(t.targets, e.Target)
		}
	}
	f.connectors = append(f.connectors, ties...)
}

// connectorEnd is a source or a target of a connector.
type connectorEnd struct {
	connector int
	source    bool
	id        trajectory.ID
}

// lastSteps returns the steps of a block that no other step of it follows.
func (f *blockRound) lastSteps(b int) []int {
	last := map[int]bool{}
	cards := f.blocks[b].cards
	for i, c := range cards {
		if !f.nodes[c.node].Type.IsData() {
			last[i] = true
			delete(last, c.parent)
		}
	}
	return slices.Sorted(maps.Keys(last))
}

// label returns a connector's relation and ends as text.
func (t connector) label() string {
	return fmt.Sprintf("%s: %s to %s", t.relation, firstIDs(t.sources), firstIDs(t.targets))
}

// firstIDs returns the first of many ids.
func firstIDs(ids []trajectory.ID) string {
	const most = 12
	var out []string
	for i, id := range ids {
		if i == most && len(ids) > most+1 {
			out = append(out, fmt.Sprintf("%d more", len(ids)-most))
			break
		}
		out = append(out, string(id))
	}
	return strings.Join(out, ", ")
}

// compareTags orders references to a Tool last, because the name of the call shows them.
func compareTags(a, b edgeTag) int {
	tool := func(t edgeTag) int {
		if t.other.Type() == trajectory.Tool {
			return 1
		}
		return 0
	}
	return cmp.Compare(tool(a), tool(b))
}
