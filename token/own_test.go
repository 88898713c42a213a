package token_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

func words(text string) int { return len(strings.Fields(text)) }

func TestAnOwnCounterCountsAndCutsTexts(t *testing.T) {
	t.Parallel()
	own := token.NewTextCounter(words)
	for _, vendor := range []string{"openai", "anthropic", "gemini", "other"} {
		c, plain := token.NewOwnCounter(own, vendor), mustCounter(t, vendor)
		if !c.Exact() || c.PriorFactor() != 100 || c != token.NewOwnCounter(own, vendor) {
			t.Error(vendor, c)
		}
		const text = "one twö  three four\nfive"
		m := convo.Message{Role: convo.User, Text: text}
		around := plain.Message(m) - plain.Text(text)
		if got := c.Message(m); got != 5+around {
			t.Errorf("%s: the message has %d tokens, expected 5 and %d around them", vendor, got, around)
		}
		for n := -1; n <= 7; n++ {
			checkCuts(t, c, text, n)
		}
	}
	if c := token.NewOwnCounter(token.NewTextCounter(func(string) int { return -4 }), "openai"); c.Text("x") != 0 {
		t.Error("a negative count is not 0")
	}
}

func mustCounter(t *testing.T, vendor string) token.Counter {
	t.Helper()
	c, err := token.NewCounter(token.O200k, vendor)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkCuts compares the cuts with all beginnings and ends between characters.
func checkCuts(t *testing.T, c token.Counter, text string, n int) {
	t.Helper()
	head, tail := "", ""
	for i := range len(text) + 1 {
		if i < len(text) && !utf8.RuneStart(text[i]) {
			continue
		}
		if words(text[:i]) <= n && n >= 0 {
			head = text[:i]
		}
		if tail == "" && words(text[i:]) <= n && n >= 0 {
			tail = text[i:]
		}
	}
	if got := c.Head(text, n); got != head {
		t.Errorf("head of %d: %q, expected %q", n, got, head)
	}
	if got := c.Tail(text, n); got != tail {
		t.Errorf("tail of %d: %q, expected %q", n, got, tail)
	}
}
