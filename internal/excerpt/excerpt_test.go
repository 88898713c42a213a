package excerpt_test

import (
	"testing"

	"github.com/weir-run/weir/internal/excerpt"
)

func TestExcerptsAreCutAtCharacters(t *testing.T) {
	for _, c := range []struct {
		text         string
		n            int
		bytes, chars string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"äbc", 1, "…", "ä…"},
		{"äöü", 3, "ä…", "äöü"},
		{"日本語", 2, "…", "日本…"},
		{"a\xff\xfe", 2, "a\xff…", "a\xff…"},
		{"abc", 0, "…", "…"},
	} {
		if got := excerpt.Bytes(c.text, c.n); got != c.bytes {
			t.Errorf("Bytes(%q, %d) = %q, want %q", c.text, c.n, got, c.bytes)
		}
		if got := excerpt.Chars(c.text, c.n); got != c.chars {
			t.Errorf("Chars(%q, %d) = %q, want %q", c.text, c.n, got, c.chars)
		}
	}
}
