package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// Sizes on a card, pixels.
const (
	headHeight  = 22   // the line with the title
	emptyHeight = 19   // an answer without text
	lineHeight  = 15   // a further line
	footHeight  = 6    // below the last line
	padLeft     = 12   // from the left edge to the text
	padRight    = 7    // from the text to the right edge
	headSize    = 11.5 // characters of the head
	textSize    = 11.5
	chipSize    = 9.5
	chipHeight  = 14
	chipPad     = 9
	chipGap     = 4
)

// line is one line of text below the head.
type line struct {
	class, sign, text string
}

// chip is a tag on a card.
type chip struct {
	text  string
	tip   string
	class string // of the type that it leads to
	x, w  float64
}

// fill chooses which of its caption and tags a card of that width shows, and computes its height.
func (c *card) fill(w float64, tags []edgeTag) {
	c.w = w
	c.chips = chipsOf(tags, w)
	left := w - padRight
	if len(c.chips) > 0 {
		left = c.chips[0].x - 5
	}
	c.relationText = shorten(c.by, (left-w*0.45)/chipSize)
	if c.by != "" {
		c.relationRight = left
		left -= width(c.relationText)*chipSize + 5
	}
	needs := padLeft + width(c.head())*headSize + 7 + width(c.name)*headSize*1.05
	c.lines, c.title, c.chipsBelow = nil, c.name, false
	switch whole := w - padRight; {
	case c.name == "" || needs <= left:
	case needs <= whole && c.by == "" && len(c.parts) > 0:
		c.chipsBelow = true
	default:
		c.lines = append(c.lines, line{"name", "", shortenMiddle(c.name, (whole-padLeft)/headSize/1.05)})
		c.title = ""
	}
	for i, p := range c.parts {
		room := w - padLeft - padRight
		if c.chipsBelow && i == 0 {
			room, p.lines = c.chips[0].x-5-padLeft, 1
		}
		c.lines = append(c.lines, p.wrap(room/textSize)...)
	}
	c.h = headHeight
	switch n := len(c.lines); {
	case n > 0:
		c.h = headHeight + float64(n)*lineHeight + footHeight
	case c.empty:
		c.h = emptyHeight
	}
}

// head returns the first line of a card.
func (c caption) head() string {
	return strings.TrimSpace(c.word + " " + c.statusText())
}

// statusText says whether a node failed or has not ended, "" for neither.
func (c caption) statusText() string {
	switch {
	case c.failed:
		return "failed"
	case c.unfinished:
		return "goes on"
	}
	return ""
}

// wrap breaks a part into lines; the last one is cut.
func (p part) wrap(room float64) []line {
	var out []line
	rest, sign := p.text, p.sign
	for i := range p.lines {
		if rest == "" {
			break
		}
		space := room - width(sign)
		cut := shorten(rest, space)
		if i < p.lines-1 {
			cut, rest = fit(rest, space)
		}
		out = append(out, line{p.class, sign, cut})
		sign = ""
	}
	return out
}

// chipsOf places as many tags as fit into about half the card at its right edge; the last one shows the number of the
// others.
func chipsOf(tags []edgeTag, w float64) []chip {
	tags = slices.Clone(tags)
	slices.SortStableFunc(tags, compareTags)
	room := w*0.55 - padRight
	var out []chip
	used := 0.0
	for i, t := range tags {
		c := newChip(t.shortText(), t.longText(), typeClass(t.other.Type()))
		left := room - used
		if i < len(tags)-1 {
			left -= 28 // for the number of the others
		}
		if i > 0 && c.w > left {
			var tips []string
			for _, more := range tags[i:] {
				tips = append(tips, more.longText())
			}
			c = newChip(fmt.Sprintf("+%d", len(tags)-i), strings.Join(tips, "\n"), "")
		} else if c.w > left {
			c = newChip(shorten(c.text, (left-chipPad)/chipSize), c.tip, c.class)
		}
		out = append(out, c)
		used += c.w + chipGap
		if c.class == "" {
			break
		}
	}
	x := w - padRight - used + chipGap
	for i := range out {
		out[i].x = x
		x += out[i].w + chipGap
	}
	return out
}

func newChip(text, tip, class string) chip {
	return chip{text: text, tip: tip, class: class, w: width(text)*chipSize + chipPad}
}

// shortText returns a tag in short form.
func (t edgeTag) shortText() string {
	s := t.name
	if t.relation != trajectory.RefersTo && t.relation != trajectory.Triggers && t.relation != trajectory.HasConclusion {
		s = plain(string(t.relation)) + " " + s
	}
	switch {
	case t.in:
		return "\u2190 " + s
	case t.other.Type() == trajectory.Tool:
		return s
	}
	return "\u2192 " + s
}

func (t edgeTag) longText() string {
	if t.in {
		return fmt.Sprintf("%s: from %s", t.relation, t.other)
	}
	return fmt.Sprintf("%s: to %s", t.relation, t.other)
}

// block draws the cards of a block and the lines between them.
func (d *drawing) block(b *block, nodes []trajectory.Node, x, y float64) {
	if len(b.cards) > 1 {
		d.printf(`<rect class="frame" x="%s" y="%s" width="%s" height="%s" rx="10"/>`+"\n", px(x), px(y), px(b.w), px(b.h))
	}
	for i, c := range b.cards {
		if c.parent >= 0 {
			d.childLine(b, i, nodes, x, y)
		}
	}
	for _, c := range b.cards {
		d.card(c, nodes[c.node], x+c.x, y+c.y)
	}
}

// childLine draws a line from a card to its child. In a lane the line begins at the previous card.
func (d *drawing) childLine(b *block, i int, nodes []trajectory.Node, x, y float64) {
	from, to := b.cards[b.cards[i].parent], b.cards[i]
	class := relationClass(to.relation)
	left, begin := x+to.x-indent+8, y+from.y+from.h
	if from.x == to.x && !to.lane { // the maximum indentation
		left = x + to.x - 4
	}
	if to.lane && from.x >= to.x {
		mate := i - 1
		for b.cards[mate].x > to.x {
			mate--
		}
		begin = y + b.cards[mate].y + headHeight/2
	}
	at := y + to.y + headHeight/2
	d.printf(`<path class="line %s" d="M%s %sV%sQ%s %s %s %sH%s" marker-end="url(#tip-%s)"><title>%s</title></path>`+"\n",
		class, px(left), px(begin), px(at-6), px(left), px(at), px(left+6), px(at), px(x+to.x), class,
		escape(fmt.Sprintf("%s: %s to %s", to.relation, nodes[from.node].ID, nodes[to.node].ID)))
}

func (d *drawing) card(c card, n trajectory.Node, x, y float64) {
	class := []string{"node", typeClass(n.Type)}
	for _, is := range []struct {
		so   bool
		name string
	}{{c.active, "active"}, {c.failed, "failed"}, {c.unfinished && !c.failed, "open"}, {c.inactive, "off"}} {
		if is.so {
			class = append(class, is.name)
		}
	}
	d.printf(`<g class="%s" transform="translate(%s %s)"><title>%s</title>`+"\n", strings.Join(class, " "), px(x), px(y), escape(xmlText(tooltip(n))))
	d.printf(`<rect class="card" width="%[1]s" height="%[2]s" rx="7"/><rect class="tint" width="%[1]s" height="%[2]s" rx="7"/>`, px(c.w), px(c.h))
	d.printf(`<path class="bar" d="M5 0H7A7 7 0 0 0 0 7V%sA7 7 0 0 0 7 %sH5z"/>`+"\n", px(c.h-7), px(c.h))
	d.printf(`<text class="head" x="%d" y="%s"><tspan class="word">%s</tspan>`, padLeft, px(min(15, c.h/2+4)), escape(c.word))
	if s := c.statusText(); s != "" {
		d.printf(`<tspan class="stands" dx="5">%s</tspan>`, s)
	}
	if c.title != "" {
		d.printf(`<tspan class="name" dx="7">%s</tspan>`, escape(c.title))
	}
	d.printf("</text>\n")
	if c.relationText != "" {
		d.printf(`<text class="by" x="%s" y="15" text-anchor="end">%s</text>`, px(c.relationRight), escape(c.relationText))
	}
	chipTop := 4.0
	if c.chipsBelow {
		chipTop = headHeight - 0.5
	}
	for _, chip := range c.chips {
		d.printf(`<g class="%s" transform="translate(%s %s)"><title>%s</title><rect class="edge" width="%s" height="%d" rx="4"/><text class="tag" x="4.5" y="10.3">%s</text></g>`+"\n",
			chip.class, px(chip.x), px(chipTop), escape(chip.tip), px(chip.w), chipHeight, escape(chip.text))
	}
	for i, l := range c.lines {
		d.text(l, c.w, headHeight+float64(i)*lineHeight+10.5)
	}
	if c.active {
		d.printf(`<path class="flag" d="M%s -10h46a4 4 0 0 1 4 4v6a4 4 0 0 1 -4 4h-46a4 4 0 0 1 -4 -4v-6a4 4 0 0 1 4 -4z"/><text class="flagged" x="%s" y="0.3">active</text>`,
			px(c.w-56), px(c.w-33))
	}
	d.b.WriteString("</g>\n")
}

// text draws a line of a card; right-to-left text is aligned to the right.
func (d *drawing) text(l line, w, y float64) {
	x, direction := float64(padLeft), ""
	if isRightToLeft(l.text) {
		x, direction = w-padRight, ` direction="rtl"`
	}
	sign := ""
	if l.sign != "" {
		sign = `<tspan class="sign">` + escape(l.sign) + `</tspan>`
	}
	d.printf(`<text class="%s" x="%s" y="%s"%s>%s%s</text>`+"\n", l.class, px(x), px(y), direction, sign, escape(l.text))
}

// xmlText removes characters that are invalid in XML.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, s)
}

func typeClass(t trajectory.Type) string { return "t-" + strings.ToLower(string(t)) }
