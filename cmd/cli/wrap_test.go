package cli

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
)

// phrase is n words, some of them of wide characters.
func phrase(r *rand.Rand, n int) string {
	var words []string
	for range n {
		words = append(words, []string{"the", "model_overloaded", "流程失败了", "👩‍👩‍👧", "naïve", "https://example.com/a/long/path", "a"}[r.IntN(7)])
	}
	return strings.Join(words, " ")
}

// collapseSpaces returns a text without its spaces and breaks.
func collapseSpaces(s string) string { return strings.Join(strings.Fields(s), "") }

// shownAt returns what a table prints at a width.
func shownAt(t *table, width int) string {
	var out strings.Builder
	t.out, t.width = &out, width
	t.print()
	return out.String()
}

func TestTableFitsTerminalAndKeepsErrors(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		tb := p.table("SEQ NODE TYPE STATUS TIME MODEL TOKENS COST NOTE", "MODEL", "TYPE", "SEQ", "TIME")
		var failure string
		for n := range 1 + r.IntN(5) {
			failure = phrase(r, r.IntN(40))
			tb.row(fmt.Sprint(n), strings.Repeat("refine#12/", r.IntN(5))+"draft", "llmRequest", "failed", "1.2s", "openai/gpt-5-mini", "123456", "$0.1234", failure)
		}
		for _, width := range []int{40, 60, 80, 120, 200} {
			text := shownAt(tb, width)
			checkWidth(t, text, width)
			if width >= 60 {
				checkComplete(t, tb, text, failure)
			}
		}
	}
}

// checkWidth checks that no line is wider than the terminal.
func checkWidth(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d columns of %d: %q", n, width, line)
		}
	}
}

// checkComplete checks that a table has what matters, and names what it has not.
func checkComplete(t *testing.T, tb *table, text, failure string) {
	t.Helper()
	head, _, _ := strings.Cut(text, "\n")
	for _, column := range []string{"STATUS", "TOKENS", "COST", "NOTE"} {
		if !strings.Contains(head, column) {
			t.Errorf("no %s in %q", column, head)
		}
	}
	if !strings.Contains(collapseSpaces(lastColumn(text)), collapseSpaces(failure)) {
		t.Errorf("the error is not whole: %s\n%s", failure, text)
	}
	for _, name := range tb.drop {
		if !strings.Contains(text, name) {
			t.Errorf("nothing says that %s is not shown:\n%s", name, text)
		}
	}
}

// lastColumn returns the text of the last column of a table.
func lastColumn(text string) string {
	lines := strings.Split(text, "\n")
	at := lipgloss.Width(lines[0][:strings.Index(lines[0], "NOTE")])
	var out []string
	for _, line := range lines[1:] {
		rest, n := line, 0
		for _, r := range line {
			if n >= at {
				break
			}
			n += lipgloss.Width(string(r))
			rest = rest[len(string(r)):]
		}
		out = append(out, rest)
	}
	return strings.Join(out, " ")
}

func TestTableOutsideTerminalIsComplete(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	tb := p.table("NODE NOTE", "NODE")
	tb.row("a", strings.Repeat("word ", 100)+"end")
	if text := shownAt(tb, 0); strings.Count(text, "\n") != 2 || !strings.Contains(text, "end") {
		t.Errorf("%q", text)
	}
}

func TestShortenCountsColumns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"short": "short", "exactly ten": "exactly t…", "流程失败了吗我们": "流程失败…", "a\nb": "a b", "": "",
	} {
		if got := shorten(s, 10); got != want || lipgloss.Width(got) > 10 {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

// wrapInPieces returns a text written in pieces, at a width.
func wrapInPieces(r *rand.Rand, s string, width int) string {
	var out strings.Builder
	f := lineWrapper{out: io.Writer(&out), width: width}
	for runes := []rune(s); len(runes) > 0; {
		n := 1 + r.IntN(len(runes))
		f.write(string(runes[:n]))
		runes = runes[n:]
	}
	f.endLine()
	return out.String()
}

func TestStreamedTextWrapsAtSpaces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := phrase(r, r.IntN(60)) + "\n" + phrase(r, r.IntN(60)) + "\n\n    code()"
		for _, width := range []int{40, 60, 80, 120} {
			got := wrapInPieces(r, s, width)
			if collapseSpaces(got) != collapseSpaces(s) {
				t.Fatalf("seed %d, width %d: %q became %q", seed, width, s, got)
			}
			checkWidth(t, got, width)
			for _, word := range []string{"the", "model_overloaded", "naïve", "    code()"} {
				if strings.Count(got, word) != strings.Count(s, word) {
					t.Errorf("seed %d, width %d: %q is broken:\n%s", seed, width, word, got)
				}
			}
		}
		if got := wrapInPieces(r, s, 0); got != s {
			t.Errorf("seed %d: without a terminal %q became %q", seed, s, got)
		}
	}
}
