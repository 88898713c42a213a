package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// table prints rows in columns as wide as their contents; the last column may be as
// long as it likes. In a terminal a table with a head is as wide as the terminal at
// most: the last column is wrapped at spaces, columns that say nothing go, then those
// that drop names, in its order, and then the widest are wrapped. Where that
// is not enough the last stands below its row. What was left out is named at the end.
type table struct {
	out   io.Writer
	width int // of the terminal, 0 for none
	head  lipgloss.Style
	names []string // of the columns, nil for a table without a head
	drop  []string // columns that may go, the least important first
	rows  [][]string
}

// table makes a table for stdout. head is the first row, "" for none, its
// columns separated by blanks.
func (p *cli) table(head string, drop ...string) *table {
	t := &table{out: p.out, head: p.styleFor(p.out).dim, drop: drop}
	if head != "" {
		t.width = widthOf(p.out)
		for h := range strings.FieldsSeq(head) {
			t.names = append(t.names, strings.ReplaceAll(h, "_", " "))
		}
	}
	return t
}

// printList prints a list: as a JSON array of what row returns, as the note none if it is empty, or as a table with what
// cells returns.
func printList[T, R any](p *cli, list []T, asJSON bool, row func(*T) R, none string, t *table, cells func(*T) []string) {
	switch {
	case asJSON:
		rows := make([]R, 0, len(list))
		for i := range list {
			rows = append(rows, row(&list[i]))
		}
		writeJSON(p.out, rows)
	case len(list) == 0:
		p.notef("%s", none)
	default:
		for i := range list {
			t.row(cells(&list[i])...)
		}
		t.print()
	}
}

// row adds a row; what would break it is a blank.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		if strings.ContainsAny(c, "\n\r\t") {
			cells[i] = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(c)
		}
	}
	t.rows = append(t.rows, cells)
}

func (t *table) empty() bool { return len(t.rows) == 0 }

const (
	columnGap    = 2  // between columns
	minLastWidth = 20 // what the last column should have of a line
	minCellWidth = 10 // what any column is left with

	belowMargin = 4 // before what stands below its row
)

// layout is how a table is printed: which columns, and how wide they are.
type layout struct {
	columns []int // by their place in a row
	widths  []int // of all columns
	dropped []string
	below   int // the column that stands below its row, since it has no room next to it; -1 for none
}

func (t *table) print() {
	l := t.fit()
	if t.names != nil {
		var head []string
		for _, n := range t.names {
			head = append(head, t.head.Render(n))
		}
		t.line(&l, head)
	}
	for _, r := range t.rows {
		t.line(&l, r)
	}
	if len(l.dropped) > 0 {
		note := fmt.Sprintf("(%s not shown at this width; --json has all)", strings.Join(l.dropped, ", "))
		fmt.Fprintln(t.out, t.head.Render(wrapped(note, t.width)))
	}
}

// natural returns how wide the columns are where there is room for all.
func (t *table) natural() []int {
	var widths []int
	for _, r := range append([][]string{t.names}, t.rows...) {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	return widths
}

// fit says what of the table fits into its width.
func (t *table) fit() layout {
	l := layout{widths: t.natural(), below: -1}
	for i := range l.widths {
		l.columns = append(l.columns, i)
	}
	if t.width == 0 || t.names == nil || len(l.columns) < 2 {
		return l
	}
	last := len(l.widths) - 1
	least := min(l.widths[last], minLastWidth)
	over := func() int { return l.total() - l.widths[last] + least - t.width }
	for i := 0; i < last && over() > 0; i++ {
		if t.blank(i) {
			l.remove(i)
		}
	}
	for _, name := range t.drop {
		if i := slices.Index(t.names, name); over() > 0 && i >= 0 && slices.Contains(l.columns, i) {
			l.remove(i)
			l.dropped = append(l.dropped, name)
		}
	}
	for over() > 0 && l.squeeze(last, over()) {
	}
	if over() > 0 {
		l.remove(last)
		l.below, l.widths[last] = last, t.width-belowMargin
		return l
	}
	l.widths[last] = min(l.widths[last], t.width-(l.total()-l.widths[last]))
	return l
}

// squeeze makes the widest column but the last narrower by at most so much, and reports
// whether one could be.
func (l *layout) squeeze(last, by int) bool {
	widest := -1
	for _, i := range l.columns {
		if i != last && (widest < 0 || l.widths[i] > l.widths[widest]) {
			widest = i
		}
	}
	if widest < 0 || l.widths[widest] <= minCellWidth {
		return false
	}
	l.widths[widest] = max(minCellWidth, l.widths[widest]-by)
	return true
}

// total returns how wide a line is.
func (l *layout) total() int {
	n := columnGap * (len(l.columns) - 1)
	for _, i := range l.columns {
		n += l.widths[i]
	}
	return n
}

func (l *layout) remove(i int) {
	l.columns = slices.DeleteFunc(l.columns, func(c int) bool { return c == i })
}

// blank reports whether a column says nothing.
func (t *table) blank(i int) bool {
	return !slices.ContainsFunc(t.rows, func(r []string) bool { return i < len(r) && r[i] != "" && r[i] != "-" })
}

// line prints a row, on as many lines as its longest cell takes.
func (t *table) line(l *layout, row []string) {
	cells := make([][]string, len(l.columns))
	lines := 1
	for at, i := range l.columns {
		if i >= len(row) {
			continue
		}
		cells[at] = []string{row[i]}
		if t.width > 0 && lipgloss.Width(row[i]) > l.widths[i] {
			breaks := "/" // of paths
			if at == len(l.columns)-1 {
				breaks = ""
			}
			cells[at] = strings.Split(lipgloss.Wrap(row[i], l.widths[i], breaks), "\n")
		}
		lines = max(lines, len(cells[at]))
	}
	for n := range lines {
		var b strings.Builder
		for at, i := range l.columns {
			cell := ""
			if n < len(cells[at]) {
				cell = cells[at][n]
			}
			b.WriteString(cell)
			if at < len(l.columns)-1 {
				b.WriteString(strings.Repeat(" ", max(0, l.widths[i]-lipgloss.Width(cell))+columnGap))
			}
		}
		fmt.Fprintln(t.out, strings.TrimRight(b.String(), " "))
	}
	if l.below >= 0 && l.below < len(row) && row[l.below] != "" {
		fmt.Fprintln(t.out, indent(wrapped(row[l.below], l.widths[l.below]), strings.Repeat(" ", belowMargin)))
	}
}

// count is "1 node" or "2 nodes".
func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
