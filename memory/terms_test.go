package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/weir-run/weir/memory"
)

func TestTextIsSplitIntoTerms(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		" .,-!\"'·\x00\xff ":         "",
		"The user's Diet":            "the user s diet",
		"don't_stop-3.14":            "don t stop 3 14",
		"Crème BRÛLÉE, naïve":        "creme brulee naive",
		"re\u0301sume\u0301":         "resume",
		"Łódź Ørsted İstanbul ırak":  "lodz orsted istanbul irak",
		"Straße ΣΊΣΥΦΟΣ ﬁx":          "strasse σισυφοσ fix",
		"co\u00adoperate wo\u200bw":  "cooperate wow",
		"北京烤鸭":                       "北京 京烤 烤鸭 鸭",
		"京":                          "京",
		"iPhone15を買う":                "iphone15 を買 買う う",
		"東京タワー":                      "東京 京タ タワ ワー ー",
		"ｶﾀｶﾅ ガ":                     "カタ タカ カナ ナ ガ",
		"ไทย":                        "ไท ทย ย",
		"서울에서 일":                     "서울에서 일",
		"हिन्दी में":                 "हिन्दी में",
		"مُحَمَّد \u200eيُحِبُّ":     "محمد يحب",
		"שָׁלוֹם":                    "שלום",
		"I ❤️ 🍕🍕 & 👍🏽":               "i ❤ 🍕 🍕 👍 🏽",
		"x² ½ Ⅳ":                     "x2 1 2 iv",
		"a\u0301\u0301\u0301 \u0301": "a",
	} {
		if got := strings.Join(memory.Terms(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := memory.Terms(strings.Repeat("é", 500))
	if len(long) != 1 || utf8.RuneCountInString(long[0]) != memory.MaxTerm {
		t.Errorf("a long word is %v", long)
	}
}

func TestQuestionIsSplitIntoSearchTerms(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Who IS the diet, diet?": "who* is the* diet*",
		"北京烤鸭":                   "北京 京烤 烤鸭",
		"京 京都":                   "京* 京都",
		"서울 일":                   "서울* 일",
		"🍕 a":                    "🍕 a",
	} {
		var got []string
		for _, s := range memory.SearchTerms(text) {
			if s.Prefix {
				s.Text += "*"
			}
			got = append(got, s.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "word%d ", i)
	}
	if got := memory.SearchTerms(b.String()); len(got) != memory.MaxTerms || got[31].Text != "word31" {
		t.Errorf("of many words %d count: %v", len(got), got)
	}
}

// FuzzAnyTextIsCutIntoCleanTerms holds terms to what stores build on: letters,
// digits, marks and symbols, no quotes, no spaces, of ASCII small letters and
// digits alone; and a text is found by itself.
func FuzzAnyTextIsCutIntoCleanTerms(f *testing.F) {
	for _, s := range []string{"", "a b", "北京", "e\u0301", "\xff", "NEAR(\"a\" b*)", "🏳️‍🌈", "ǅ ﷺ", "İ", "1·a", "\u3099", "ᄀ가"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := memory.Terms(text)
		for _, term := range terms {
			if !isCleanTerm(term) {
				t.Fatalf("%q has the term %q", text, term)
			}
		}
		search := memory.SearchTerms(text)
		if len(search) > memory.MaxTerms || (len(search) == 0) != (len(terms) == 0) {
			t.Fatalf("%q has %d terms and looks for %d", text, len(terms), len(search))
		}
		for _, s := range search {
			if !s.MatchesAny(terms) {
				t.Fatalf("%q looks for %v and does not have it: %q", text, s, terms)
			}
		}
	})
}

func isCleanTerm(term string) bool {
	return term != "" && utf8.ValidString(term) && utf8.RuneCountInString(term) <= memory.MaxTerm &&
		!strings.ContainsFunc(term, func(r rune) bool {
			small := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
			return r < utf8.RuneSelf && !small || !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.So, unicode.Sk)
		})
}
