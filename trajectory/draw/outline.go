package draw

import (
	"github.com/weir-run/weir/trajectory"
)

// OutlineLine describes a node in a list with one line a node. Its texts are complete, on one line each, without
// invisible characters.
type OutlineLine struct {
	Round int
	ID    trajectory.ID
	// Depth is 0 for a step, 1 for its children, a call or data, and so on.
	Depth int
	// Called is the label of the node in other lines, such as "call 5".
	Called string
	// Kind is the kind of an Action or a State, Name the node's name; both may be empty.
	Kind, Name string
	// By is the relation to its parent, if it is not obvious.
	By string
	// Said is the text or input, Result the result; both may be empty.
	Said, Result string
	// After names the steps that this one follows, unless it is the one step above it. Refers names other related
	// nodes, except a tool of its name.
	After, Refers []string
	// Failed, Open, Active and Off mean that the node failed, has not ended, ends an active branch, and is on no
	// active branch.
	Failed, Open, Active, Off bool
}

// Outline lists the nodes of a graph round by round: steps in order, each followed by its children, then tools.
func Outline(g *trajectory.Graph) []OutlineLine {
	rounds, _ := split(g)
	m := findActivity(g)
	var out []OutlineLine
	for _, r := range rounds {
		f := toBlocks(r, m)
		into := f.connectorsByTarget()
		var steps, shelf []int
		for b := range f.blocks {
			if f.isHeader[b] {
				shelf = append(shelf, b)
			} else {
				steps = append(steps, b)
			}
		}
		above := -1
		for _, b := range steps {
			out = append(out, f.outlineBlock(b, above, into)...)
			above = b
		}
		for _, b := range shelf {
			out = append(out, f.outlineBlock(b, -1, into)...)
		}
	}
	return out
}

// outlineBlock lists the nodes of a block.
func (f *blockRound) outlineBlock(b, above int, into map[trajectory.ID][]int) []OutlineLine {
	cards := f.blocks[b].cards
	depth := make([]int, len(cards))
	var out []OutlineLine
	for i := range cards {
		c := &cards[i]
		n := f.nodes[c.node]
		l := OutlineLine{
			Round: f.number, ID: n.ID, Called: c.word, Name: c.name, By: c.by,
			Kind: plain(text(n, trajectory.AttrKind)), Failed: c.failed, Open: c.unfinished, Active: c.active, Off: c.inactive,
		}
		if c.parent >= 0 {
			depth[i] = depth[c.parent] + 1
		} else {
			l.After = f.predecessorNames(above, into[n.ID])
		}
		l.Depth = depth[i]
		for _, p := range c.parts {
			switch {
			case p.class == "result" || p.sign != "":
				l.Result = p.text
			case l.Said != "":
				l.Said += "  " + p.text
			default:
				l.Said = p.text
			}
		}
		for _, t := range f.tags[c.node] {
			if i, ok := f.index[t.other]; !ok || t.other.Type() != trajectory.Tool || f.nodes[i].Name != n.Name {
				l.Refers = append(l.Refers, t.shortText())
			}
		}
		out = append(out, l)
	}
	return out
}

// connectorsByTarget returns the indexes of the connectors that lead to each node.
func (f *blockRound) connectorsByTarget() map[trajectory.ID][]int {
	out := make(map[trajectory.ID][]int)
	for i, t := range f.connectors {
		for _, id := range t.targets {
			out[id] = append(out[id], i)
		}
	}
	return out
}

// predecessorNames names the predecessors of a step, given the connectors that lead to it;
// nothing if that is the whole block above it.
func (f *blockRound) predecessorNames(above int, connectors []int) []string {
	var out []string
	plainly := true
	for _, i := range connectors {
		t := f.connectors[i]
		plainly = plainly && t.from == above && t.card < 0
		for _, s := range t.sources {
			out = append(out, f.cardTitle(s))
		}
	}
	if plainly {
		return nil
	}
	return out
}
