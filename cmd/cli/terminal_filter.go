package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/weir-run/weir/app"
)

// terminalFilter is a terminal that shows texts and obeys none: of what is written to it, it
// passes on printable characters, newlines, tabs and the colours that the program
// itself uses. Texts come from models, tools, people and files of others, and every
// command prints some. Only the writer uses it; writes do not overlap.
type terminalFilter struct {
	// File is the terminal. What moves the cursor on purpose is written to it directly.
	*os.File
	// partial is the beginning of a character whose other bytes come with the next write.
	partial []byte
}

// filterTerminal returns f, behind a guard where f is a terminal: bytes in a file or pipe
// stay as they are.
func filterTerminal(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return &terminalFilter{File: f}
}

// unfiltered is what a guard guards, or w itself.
func unfiltered(w io.Writer) io.Writer {
	if g, ok := w.(*terminalFilter); ok {
		return g.File
	}
	return w
}

// Write writes what a terminal may be shown of b. It reports all of b as written.
func (g *terminalFilter) Write(b []byte) (int, error) {
	text := append(g.partial, b...)
	whole := len(text) - partialRuneLen(text)
	g.partial = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(g.File, stripControls(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// partialRuneLen is the number of bytes at the end of b that begin a character.
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
// the program uses.
func stripControls(s string) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\x1b')
		if i < 0 {
			i = len(s)
		}
		b.WriteString(app.Printable(s[:i]))
		s = s[i:]
		n := colourSequenceLen(s)
		b.WriteString(s[:n])
		s = strings.TrimPrefix(s[n:], "\x1b")
	}
	return b.String()
}

// colourSequenceLen is the length of the colour sequence that s begins with, 0 for none. Texts
// that are hidden, blink or are inverted are not among the program's own.
func colourSequenceLen(s string) int {
	rest, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		return 0
	}
	params, _, ok := strings.Cut(rest, "m")
	if !ok || len(params) > 16 {
		return 0
	}
	for p := range strings.SplitSeq(params, ";") {
		switch {
		case p == "", p == "0", p == "1", p == "2", p == "22", p == "39":
		case len(p) == 2 && (p[0] == '3' || p[0] == '9') && p[1] >= '0' && p[1] <= '7':
		default:
			return 0
		}
	}
	return len("\x1b[") + len(params) + len("m")
}
