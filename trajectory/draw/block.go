package draw

import "github.com/weir-run/weir/trajectory"

// block is a step with its dependent nodes, drawn as a tree: an answer with its calls, a call with the table that it
// returned, the table with its columns. Edges from step to step are drawn between blocks.
type block struct {
	cards []card
	w, h  float64
}

// card is one node in a block.
type card struct {
	caption
	node          int                 // index into round.nodes
	lane          bool                // a later step of a lane
	parent        int                 // index into block.cards, -1 for none
	relation      trajectory.Relation // relation to its parent
	title         string              // the name, if it is in the head
	chips         []chip
	lines         []line
	chipsBelow    bool    // the chips are in the first line, so that the head has room for the name
	relationText  string  // the part of by that fits
	relationRight float64 // its end
	x, y          float64 // relative to the block's upper left corner
	w, h          float64
}

// All lengths are pixels.
const (
	cardWidth      = 262
	indent         = 17  // indentation of a card below its parent
	maxIndents     = 5   // maximum number of indentations
	cardGap        = 5   // between the cards of a block
	framePad       = 4   // from the frame of a block of several cards to its cards
	rowGap         = 14  // between the rows of a column
	maxStackHeight = 420 // height from which another column is used
)

// arrange sets the sizes and positions of the cards.
func (b *block) arrange(tags [][]edgeTag) {
	var tops []int // the cards without parent
	for i := range b.cards {
		if b.cards[i].parent < 0 {
			tops = append(tops, i)
		}
	}
	depth := make([]int, len(b.cards))
	high := 0.0
	for i := range b.cards {
		c := &b.cards[i]
		if c.parent >= 0 {
			depth[i] = min(depth[c.parent]+1, maxIndents)
			if c.lane {
				depth[i] = 1
			}
		}
		c.x = float64(depth[i]) * indent
		c.w = cardWidth - c.x
		c.fill(c.w, tags[c.node])
		c.y = high
		high += c.h + cardGap
	}
	b.w, b.h = cardWidth, high-cardGap
	if len(tops) > maxLanes && b.h > maxStackHeight {
		b.wrapColumns(tops)
	}
	if len(b.cards) > 1 {
		b.w, b.h = b.w+2*framePad, b.h+2*framePad
		for i := range b.cards {
			b.cards[i].x += framePad
			b.cards[i].y += framePad
		}
	}
}

// wrapColumns arranges many cards in several columns, row by row.
func (b *block) wrapColumns(tops []int) {
	columns := min(5, int(b.h/maxStackHeight)+1)
	y := 0.0
	for at := 0; at < len(tops); at += columns {
		deep := 0.0
		for i, top := range tops[at:min(at+columns, len(tops))] {
			end := len(b.cards)
			if at+i+1 < len(tops) {
				end = tops[at+i+1]
			}
			from := b.cards[top].y
			for j := top; j < end; j++ {
				c := &b.cards[j]
				c.x += float64(i) * (cardWidth + cardGap)
				c.y += y - from
				deep = max(deep, c.y+c.h-y)
			}
		}
		y += deep + rowGap
	}
	b.w, b.h = float64(columns)*(cardWidth+cardGap)-cardGap, y-rowGap
}

// addCards adds the cards of another block.
func (b *block) addCards(cards []card) {
	shift := len(b.cards)
	for _, c := range cards {
		if c.parent >= 0 {
			c.parent += shift
		}
		b.cards = append(b.cards, c)
	}
}
