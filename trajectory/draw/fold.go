package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// tie is a line that is drawn from one block to another.
type tie struct {
	from, to int
	relation trajectory.Relation
	sources  []trajectory.ID
	targets  []trajectory.ID // more than one where they are a pile
	card     int             // where it leaves the block beside a card, -1 below the block
}

// tag is an edge that is written on a card and not drawn.
type tag struct {
	relation trajectory.Relation
	other    trajectory.ID
	name     string // what the other is called
	in       bool   // it leads here
}

// place is where a node is drawn.
type place struct{ block, card int }

// folded is a round cut into blocks.
type folded struct {
	round
	index  map[trajectory.ID]int
	blocks []block
	shelf  []bool // of each block: it stands at the head of the round
	at     []place
	ties   []tie
	tags   [][]tag // of each node
}

func fold(r round, m marks) *folded {
	f := &folded{round: r, index: make(map[trajectory.ID]int, len(r.nodes)), at: make([]place, len(r.nodes)), tags: make([][]tag, len(r.nodes))}
	for i, n := range r.nodes {
		f.index[n.ID] = i
	}
	makers := f.makers()
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
			f.grow(&b, i, -1, "", children)
			f.blocks = append(f.blocks, b)
			f.shelf = append(f.shelf, r.nodes[i].Type.Data())
		}
	}
	f.locate()
	f.pile(makers)
	f.locate()
	f.tie(makers)
	for i := range f.blocks {
		for j := range f.blocks[i].cards {
			c := &f.blocks[i].cards[j]
			c.caption = captionOf(r.nodes[c.node], m, c.relation)
		}
	}
	return f
}

// makers is for each node the edge by which it hangs on another, -1 where it
// begins a block. Data hangs on what made it, a call on its answer; a Tool is
// called from everywhere and hangs nowhere.
func (f *folded) makers() []int {
	out := make([]int, len(f.nodes))
	edges := make([]int, len(f.nodes)) // that lead to a node
	for i := range out {
		out[i] = -1
	}
	for i, e := range f.edges {
		to := f.index[e.Target]
		edges[to]++
		n := &f.nodes[to]
		if n.Type.Data() && n.Type != trajectory.Tool &&
			(out[to] < 0 || f.edges[out[to]].Relationship == trajectory.RefersTo && e.Relationship != trajectory.RefersTo) {
			out[to] = i
		}
		if f.calls(e) {
			out[to] = i
		}
	}
	for i, n := range f.nodes {
		if !n.Type.Data() && edges[i] > 1 {
			out[i] = -1
		}
	}
	return out
}

// calls reports whether an edge leads from an answer to a call of it, or from a
// call to what it ran.
func (f *folded) calls(e trajectory.Edge) bool {
	from, to := &f.nodes[f.index[e.Source]], &f.nodes[f.index[e.Target]]
	kind := text(*from, trajectory.Kind)
	return e.Relationship == trajectory.Generates && to.Type == trajectory.Action && from.Type == trajectory.Action &&
		(kind == trajectory.Answer || kind == trajectory.Call)
}

// grow adds a node to a block, and what hangs on it.
func (f *folded) grow(b *block, node, parent int, by trajectory.Relation, children [][]int) {
	b.cards = append(b.cards, card{node: node, parent: parent, relation: by})
	at := len(b.cards) - 1
	for _, e := range children[node] {
		f.grow(b, f.index[f.edges[e].Target], at, f.edges[e].Relationship, children)
	}
}

func (f *folded) locate() {
	for i := range f.blocks {
		for j, c := range f.blocks[i].cards {
			f.at[c.node] = place{i, j}
		}
	}
}

// tie makes lines and tags of the edges that no tree shows.
func (f *folded) tie(makers []int) {
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
		p := pair{f.at[from].block, f.at[to].block, e.Relationship}
		switch {
		case f.nodes[to].Type.Data():
			f.tagFrom(e)
		case f.shelf[p.from] || p.from == p.to:
			f.tagTo(e)
		default:
			if found[p] == nil {
				order = append(order, p)
			}
			found[p] = append(found[p], e)
		}
	}
	for _, p := range order {
		f.lines(p.from, p.to, found[p])
	}
}

// tagFrom writes an edge on the card that it leaves, tagTo on the one it leads
// to; a card of another round has none.
func (f *folded) tagFrom(e trajectory.Edge) {
	if i, ok := f.index[e.Source]; ok {
		f.tags[i] = append(f.tags[i], tag{e.Relationship, e.Target, f.called(e.Target), false})
	}
}

func (f *folded) tagTo(e trajectory.Edge) {
	if i, ok := f.index[e.Target]; ok {
		f.tags[i] = append(f.tags[i], tag{e.Relationship, e.Source, f.called(e.Source), true})
	}
}

// called is what stands at the head of a node's card.
func (f *folded) called(id trajectory.ID) string {
	if i, ok := f.index[id]; ok {
		return wordOf(f.nodes[i])
	}
	return string(id.Type()) + " " + numberOf(id)
}

// lines leads edges from one block to another: one line from below the block
// where all of its ends are led on, else one from each card.
func (f *folded) lines(from, to int, edges []trajectory.Edge) {
	cards := f.blocks[from].cards
	led := map[int]bool{}
	for _, e := range edges {
		led[f.at[f.index[e.Source]].card] = true
	}
	covered := map[int]bool{} // an end, or what an end hangs on
	whole := true
	for _, end := range f.ends(from) {
		found := false
		for at := end; at >= 0; at = cards[at].parent {
			covered[at] = true
			found = found || led[at]
		}
		whole = whole && found
	}
	var ties []tie
	for _, e := range edges {
		at := f.at[f.index[e.Source]].card
		if whole && covered[at] {
			at = -1
		}
		i := slices.IndexFunc(ties, func(t tie) bool { return t.card == at })
		if i < 0 {
			i = len(ties)
			ties = append(ties, tie{from: from, to: to, relation: e.Relationship, card: at})
		}
		ties[i].sources = with(ties[i].sources, e.Source)
		ties[i].targets = with(ties[i].targets, e.Target)
	}
	f.ties = append(f.ties, ties...)
}

// with is a set with one more.
func with(set []trajectory.ID, id trajectory.ID) []trajectory.ID {
	if slices.Contains(set, id) {
		return set
	}
	return append(set, id)
}

// ends are the steps of a block that no step of it follows.
func (f *folded) ends(b int) []int {
	last := map[int]bool{}
	cards := f.blocks[b].cards
	for i, c := range cards {
		if !f.nodes[c.node].Type.Data() {
			last[i] = true
			delete(last, c.parent)
		}
	}
	return slices.Sorted(maps.Keys(last))
}

// says is a tie in words.
func (t tie) says() string {
	return fmt.Sprintf("%s: %s to %s", t.relation, some(t.sources), some(t.targets))
}

// some are the first of many.
func some(ids []trajectory.ID) string {
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

// compareTags puts what refers to a Tool last: its name says it already.
func compareTags(a, b tag) int {
	tool := func(t tag) int {
		if t.other.Type() == trajectory.Tool {
			return 1
		}
		return 0
	}
	return cmp.Compare(tool(a), tool(b))
}
