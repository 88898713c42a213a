package cli

import (
	"crypto/rand"
	"fmt"
	"image/color"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"github.com/weir-run/weir/app"
)

// terminalFilter is a terminal that shows texts and obeys none: of what is written to it, it
// passes on printable characters, newlines, tabs and the colours that the program
// itself sets. Texts come from models, tools, people and files of others, and every
// command prints some. Only the writer uses it; writes do not overlap.
type terminalFilter struct {
	// File is the terminal. What moves the cursor on purpose is written to it directly.
	*os.File
	// mark is in every colour sequence of the program, and is removed from what the terminal gets.
	mark colourMark
	// partial is the beginning of a character whose other bytes come with the next write.
	partial []byte
}

// filterTerminal returns f, behind a guard where f is a terminal: bytes in a file or pipe
// stay as they are.
func filterTerminal(f *os.File, mark colourMark) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return &terminalFilter{File: f, mark: mark}
}

// colourMark distinguishes the program's colours from those in a text. It is a background colour, so that what measures
// and wraps styled text keeps it, and random, so that no text can contain it.
type colourMark struct{ red, green, blue uint8 }

func newColourMark() colourMark {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return colourMark{b[0], b[1], b[2]}
}

// style returns a style with the mark and nothing else.
func (m colourMark) style() lipgloss.Style {
	return lipgloss.NewStyle().Background(color.RGBA{m.red, m.green, m.blue, 0xff})
}

// parameters are the mark in a colour sequence.
func (m colourMark) parameters() string { return fmt.Sprintf("48;2;%d;%d;%d", m.red, m.green, m.blue) }

// unfiltered is what a guard guards, or w itself.
func unfiltered(w io.Writer) io.Writer {
	if g, ok := w.(*terminalFilter); ok {
		return g.File
	}
	return w
}

// unmarked is a text of the program with its colours, for the terminal behind the filter.
func (p *cli) unmarked(s string) string {
	if g, ok := p.err.(*terminalFilter); ok {
		return g.mark.stripControls(s)
	}
	return s
}

// Write writes what a terminal may be shown of b. It reports all of b as written.
func (g *terminalFilter) Write(b []byte) (int, error) {
	text := append(g.partial, b...)
	whole := len(text) - partialRuneLen(text)
	g.partial = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(g.File, g.mark.stripControls(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// partialRuneLen returns the number of bytes at the end of b that begin a character.
func partialRuneLen(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// stripControls is s without what would control a terminal, apart from the colours that
// the program set, without their mark.
func (m colourMark) stripControls(s string) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\x1b')
		if i < 0 {
			i = len(s)
		}
		b.WriteString(app.Printable(s[:i]))
		s = s[i:]
		if own, n := m.colourSequence(s); n > 0 {
			b.WriteString(own)
			s = s[n:]
		} else {
			s = strings.TrimPrefix(s, "\x1b")
		}
	}
	return b.String()
}

// colourSequence returns the colour sequence of the program that s begins with, without its mark, and its length in s;
// 0 if s begins with none. The end of all colours needs no mark.
func (m colourMark) colourSequence(s string) (own string, n int) {
	rest, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		return "", 0
	}
	params, _, ok := strings.Cut(rest, "m")
	if !ok || strings.Trim(params, "0123456789;") != "" {
		return "", 0
	}
	n = len("\x1b[") + len(params) + len("m")
	if params == "" || params == "0" {
		return s[:n], n
	}
	before, after, marked := strings.Cut(";"+params+";", ";"+m.parameters()+";")
	if !marked {
		return "", 0
	}
	return "\x1b[" + strings.Trim(before+";"+after, ";") + "m", n
}
