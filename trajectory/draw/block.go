package draw

import "github.com/weir-run/weir/trajectory"

// block is a step with what hangs on it, drawn as a tree: an answer with its
// calls, a call with the table it returned, that with its columns. What leads
// from step to step is drawn between blocks.
type block struct {
	cards []card
	w, h  float64
}

// card is one node in a block.
type card struct {
	caption
	node          int                 // index into round.nodes
	lane          bool                // it is a later step of a lane
	parent        int                 // index into block.cards, -1 for none
	relation      trajectory.Relation // by which it hangs on its parent
	title         string              // the name, where it stands in the head
	chips         []chip
	lines         []line
	chipsBelow    bool    // the chips stand in the first line, to leave the head to the name
	relationText  string  // as much of by as has room
	relationRight float64 // where it ends
	x, y          float64 // from the block's upper left corner
	w, h          float64
}

// All lengths are pixels.
const (
	cardWidth      = 262
	indent         = 17  // of a card from the one that it hangs on
	maxIndents     = 5   // indents there are
	cardGap        = 5   // between the cards of a block
	framePad       = 4   // from the frame around a block of several cards to these
	rowGap         = 14  // between the rows of a pile
	maxStackHeight = 420 // a pile that is higher goes on beside itself
)

// arrange gives the cards their sizes and places.
func (b *block) arrange(tags [][]edgeTag) {
	var tops []int // the cards that hang on none
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

// wrapColumns lays a high pile out in several columns, row after row.
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
