package draw

import (
	"slices"

	"github.com/weir-run/weir/trajectory"
)

// OutlineLine is a node of a graph as a list of nodes shows it, one a line: its texts are
// on one line each, without what is not seen, and whole.
type OutlineLine struct {
	Round int
	ID    trajectory.ID
	// Depth is 0 for a step, 1 for what hangs on it, a call or data, and so on.
	Depth int
	// Called is what the node is called in the lines of others, as "call 5".
	Called string
	// Kind is that of an Action or a State, Name the node's own; both may be empty.
	Kind, Name string
	// By is the relation by which it hangs on another, where it is not obvious.
	By string
	// Said is what was said or done, Result what came of it; both may be empty.
	Said, Result string
	// After names the steps that this one follows from, where that is not the one
	// step above it; Refers what else it has to do with, but for a tool of its name.
	After, Refers []string
	// Failed, Open, Active and Off say that it failed, that it has not ended, that an
	// active branch ends here, and that it is a step of none.
	Failed, Open, Active, Off bool
}

// Outline lists the nodes of a graph round after round: steps in their order, each
// with what hangs on it below it, then tools.
func Outline(g *trajectory.Graph) []OutlineLine {
	rounds, _ := split(g)
	m := findActivity(g)
	var out []OutlineLine
	for _, r := range rounds {
		f := toBlocks(r, m)
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
			out = append(out, f.outlineBlock(b, above)...)
			above = b
		}
		for _, b := range shelf {
			out = append(out, f.outlineBlock(b, -1)...)
		}
	}
	return out
}

// outlineBlock lists the nodes of a block that stands below another.
func (f *blockRound) outlineBlock(b, above int) []OutlineLine {
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
			l.After = f.predecessorNames(b, above, n.ID)
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

// predecessorNames names what a step follows from, nothing where that is the block above
// it as a whole.
func (f *blockRound) predecessorNames(b, above int, id trajectory.ID) []string {
	var out []string
	plainly := true
	for _, t := range f.connectors {
		if t.to != b || !slices.Contains(t.targets, id) {
			continue
		}
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
