package token

import (
	"sort"
	"unicode/utf8"
)

// TextCounter counts the tokens of texts in place of an encoding, for example with the tokenizer
// of a model that this package does not have. Make one for each model, and keep it: counts are
// cached under it.
type TextCounter struct {
	count func(text string) int
}

// NewTextCounter returns a counter that calls count. The function must be safe for concurrent use
// and deterministic, and must not panic. It must return at most the number of bytes of the text:
// where the bytes of a request fit already, nothing is counted. A beginning of a text must
// not have more tokens than the text.
func NewTextCounter(count func(text string) int) *TextCounter { return &TextCounter{count} }

// NewOwnCounter is NewCounter with a text counter, whose counts are taken as exact. What is sent
// around texts (roles, calls, definitions of tools, images) is counted as by NewCounter.
func NewOwnCounter(own *TextCounter, vendor string) Counter {
	return Counter{own: own, vendor: vendorOf(vendor), exact: true}
}

func (c *TextCounter) text(text string) int { return max(c.count(text), 0) }

// head returns the longest beginning of text with at most n tokens that ends between characters.
func (c *TextCounter) head(text string, n int) string {
	ends := runeStarts(text)
	i := sort.Search(len(ends), func(i int) bool { return c.text(text[:ends[i]]) > n })
	if i == 0 {
		return ""
	}
	return text[:ends[i-1]]
}

// tail returns the longest end of text with at most n tokens that begins between characters.
func (c *TextCounter) tail(text string, n int) string {
	starts := runeStarts(text)
	i := sort.Search(len(starts), func(i int) bool { return c.text(text[starts[i]:]) <= n })
	if i == len(starts) {
		return ""
	}
	return text[starts[i]:]
}

// runeStarts returns the positions between the characters of a text, its ends included.
func runeStarts(text string) []int {
	out := make([]int, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		out = append(out, i)
	}
	return append(out, len(text))
}
