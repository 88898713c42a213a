package draw

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const family = "\U0001F468\u200d\U0001F469\u200d\U0001F467"

func TestCutTextKeepsGraphemesWhole(t *testing.T) {
	t.Parallel()
	flags := "\U0001F1EB\U0001F1F7\U0001F1EF\U0001F1F5"
	if got := clusters("ae\u0301" + family + flags + "\U0001F44D\U0001F3FD"); !slices.Equal(got, []string{
		"a", "e\u0301", family, "\U0001F1EB\U0001F1F7", "\U0001F1EF\U0001F1F5", "\U0001F44D\U0001F3FD",
	}) {
		t.Errorf("got %q", got)
	}
	if got := shorten("ab "+family+family+family, 4); got != "ab "+family+"\u2026" {
		t.Errorf("got %q", got)
	}
	if line, rest := fit("one two three", width("one two t")); line != "one two" || rest != "three" {
		t.Errorf("got %q and %q", line, rest)
	}
	if got := shortenMiddle("deliveries_of_all_suppliers_october_2026.parquet", 18); !strings.HasSuffix(got, "parquet") || width(got) > 18 {
		t.Errorf("got %q", got)
	}
}

func TestTextIsReadFromTheSideOfItsFirstLetter(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"": false, "abc": false, "12 \u05de\u05d9": true, "\u0627\u0644 ACME": true, "ACME \u0627\u0644": false, "\u65e5\u672c": false,
	} {
		if isRightToLeft(s) != want {
			t.Errorf("%q: got %v", s, !want)
		}
	}
}

func TestObjectsAreWrittenAsFields(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`{"month":"2026-10","all":true,"in":{"a":[1,2]}}`: `month: 2026-10, all: true, in: {"a":[1,2]}`,
		`{}`: `{}`, `[1]`: `[1]`, `{"cut": "of`: `{"cut": "of`, "plain": "plain", `{"a":1} and more`: "{\"a\":1} and more",
	} {
		if got := fields(s); got != want {
			t.Errorf("%s: got %q, want %q", s, got, want)
		}
	}
}

func FuzzTextIsCutToItsRoom(f *testing.F) {
	f.Add("one two three "+family, 5.0)
	f.Add("\u05de\u05d9 \u65e5\u672c\u8a9e", 2.5)
	f.Fuzz(func(t *testing.T, s string, room float64) {
		if !utf8.ValidString(s) || room < 2 || room > 1e6 {
			t.Skip()
		}
		for _, cut := range []string{shorten(s, room), shortenMiddle(s, room)} {
			if !utf8.ValidString(cut) || width(cut) > room+1e-9 {
				t.Errorf("%q in %g: got %q, which is %g wide", s, room, cut, width(cut))
			}
		}
		line, rest := fit(s, room)
		if width(line) > room || strings.Join(strings.Fields(line+" "+rest), "") != strings.Join(strings.Fields(s), "") {
			t.Errorf("%q in %g: got %q and %q", s, room, line, rest)
		}
	})
}
