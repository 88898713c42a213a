package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestRowsThatNeedAttentionAreListedFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows  string // one letter a row; those in upper case come first
		limit rowLimit
		want  string
	}{
		{"", 3, ""},
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"abcd", 0, "abcd"},
		{"abCd", 1, "C"},
		{"abcD", 2, "aD"},
		{"aBcDeF", 2, "BD"},
		{"aBcDeF", 4, "aBDF"},
		{"ABCD", 2, "AB"},
	} {
		chosen := c.limit.choose(len(c.rows), func(i int) bool { return c.rows[i] < 'a' })
		var got strings.Builder
		for _, i := range chosen {
			got.WriteByte(c.rows[i])
		}
		if got.String() != c.want || !slices.IsSorted(chosen) {
			t.Errorf("%d of %q: got %q, want %q", c.limit, c.rows, got.String(), c.want)
		}
	}
}

func TestNoteSaysHowManyRowsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, all int
		want       string
	}{{3, 3, ""}, {0, 0, ""}, {3, 5, "2 of 5 nodes are left out; list all with `weir show x --limit 0`\n"}} {
		var out strings.Builder
		rowLimit(3).note(&out, c.shown, c.all, "node", "weir show x --limit 0")
		if out.String() != c.want {
			t.Errorf("%d of %d: %q, want %q", c.shown, c.all, out.String(), c.want)
		}
	}
}
