package main

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// table prints rows in columns as wide as their contents; the last column may
// be as long as it likes. In a terminal the rows of a table with a head, which
// are there to be looked over, end where the line ends.
type table struct {
	out   io.Writer
	width int // where rows end, 0 for nowhere
	head  lipgloss.Style
	rows  [][]string
}

// table makes a table for stdout. head is the first row, "" for none, its
// columns separated by blanks.
func (p *program) table(head string) *table {
	t := &table{out: p.out, head: p.styleOf(p.out).dim}
	if head != "" {
		t.width = widthOf(p.out)
		var row []string
		for h := range strings.FieldsSeq(head) {
			row = append(row, t.head.Render(strings.ReplaceAll(h, "_", " ")))
		}
		t.rows = append(t.rows, row)
	}
	return t
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

func (t *table) print() {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r[:max(len(r)-1, 0)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(c)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if t.width > 0 {
			line = lipgloss.NewStyle().MaxWidth(t.width).Render(line)
		}
		fmt.Fprintln(t.out, line)
	}
}

// count is "1 node" or "2 nodes".
func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
