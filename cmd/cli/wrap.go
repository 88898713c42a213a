package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// wrapped returns a text whose lines are of at most so many columns: broken at spaces, and
// inside a word only where it is longer than a line. The beginning of a line that was
// broken is indented like its first part.
func wrapped(s string, width int) string {
	if width <= 0 {
		return s
	}
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		margin := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if lipgloss.Width(line) <= width || len(margin) > width/2 {
			margin = ""
		}
		if lipgloss.Width(line) <= width {
			out = append(out, line)
			continue
		}
		for part := range strings.SplitSeq(lipgloss.Wrap(line[len(margin):], width-len(margin), ""), "\n") {
			out = append(out, margin+part)
		}
	}
	return strings.Join(out, "\n")
}

// wrap returns a text for stdout, each line of it behind by, and wrapped where stdout is a
// terminal.
func (p *cli) wrap(s, by string) string {
	if width := widthOf(p.out); width > 0 {
		s = wrapped(s, max(width-lipgloss.Width(by), minCellWidth))
	}
	return indent(s, by)
}

// printf prints a line for people, wrapped where stdout is a terminal.
func (p *cli) printf(format string, args ...any) {
	fmt.Fprintln(p.out, p.wrap(fmt.Sprintf(format, args...), ""))
}

// lineWrapper writes a text that comes in pieces, and breaks lines at spaces. A word is
// written when it is complete. Flush it where the text ends.
type lineWrapper struct {
	out    io.Writer
	width  int // of a line, 0 for one that is never broken
	style  func(s string) string
	column int
	spaces int // before the word
	word   strings.Builder
}

// tabSpaces is how many spaces a tab is shown as.
const tabSpaces = 4

// zeroWidthJoiner joins two characters into one.
const zeroWidthJoiner = '\u200d'

// write takes in a piece.
func (f *lineWrapper) write(s string) {
	if f.width <= 0 {
		f.print(s)
		return
	}
	var before rune
	for _, r := range s {
		switch r {
		case '\n':
			f.flush()
			f.print("\n")
			f.column, f.spaces = 0, 0
		case ' ', '\t':
			f.flush()
			if f.spaces++; r == '\t' {
				f.spaces += tabSpaces - 1
			}
		default:
			// Between wide characters a line may be broken; one that is joined to the
			// one before, or changes its look, stays with it.
			if isWide(r) && before != zeroWidthJoiner && f.word.Len() > 0 {
				f.flush()
			}
			f.word.WriteRune(r)
		}
		before = r
	}
}

// isWide reports whether a character takes two columns.
func isWide(r rune) bool {
	return r >= 0x1100 && !unicode.Is(unicode.Mn, r) && lipgloss.Width(string(r)) > 1
}

// flush writes the word that is begun.
func (f *lineWrapper) flush() {
	if f.word.Len() == 0 {
		return
	}
	word := f.word.String()
	f.word.Reset()
	n := lipgloss.Width(word)
	if f.column > 0 && f.column+f.spaces+n > f.width {
		f.print("\n")
		f.column, f.spaces = 0, 0
	}
	f.print(strings.Repeat(" ", f.spaces) + word)
	f.column += f.spaces + n
	if f.spaces = 0; f.column > f.width { // a word that is longer than a line
		f.column %= f.width
	}
}

// endLine writes what is left, and begins a line.
func (f *lineWrapper) endLine() {
	f.flush()
	f.column, f.spaces = 0, 0
}

func (f *lineWrapper) print(s string) {
	if f.style != nil && s != "\n" {
		s = f.style(s)
	}
	fmt.Fprint(f.out, s)
}
