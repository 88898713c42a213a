package recall

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A text is found by its terms. A term is a word, without case, diacritics and
// punctuation; a pair of neighbours in a script that puts no spaces between
// words, where the last of a run of such letters also stands alone; or a symbol,
// such as an emoji. Both what is remembered and what is asked for are cut this
// way, in one place, so that stores agree and no text is ever a query that cannot
// be read.
//
// Terms are made of letters, digits, marks and symbols: no space, no control
// character, and of ASCII letters and digits alone.

// Bounds of terms.
const (
	// MaxTerm is how much of a longer word counts, in letters.
	MaxTerm = 64
	// MaxTerms is how many terms of a query count, the first that are distinct.
	MaxTerms = 32

	minPrefix = 3 // letters of a word that also finds longer ones
	minHangul = 2 // where one of them is a syllable
)

// Term is one that is looked for.
type Term struct {
	Text string
	// Prefix takes every term that begins with Text.
	Prefix bool
}

// Terms are those of a text, in order.
func Terms(text string) []string {
	var out []string
	splitText(text, func(p piece) {
		for i := range p.letters {
			switch {
			case p.kind == word:
				out = append(out, string(p.letters))
				return
			case p.kind == symbol || i == len(p.letters)-1:
				out = append(out, string(p.letters[i:i+1]))
			default:
				out = append(out, string(p.letters[i:i+2]))
			}
		}
	})
	return out
}

// SearchTerms are the terms that a question looks for, each once, at most MaxTerms.
// Words of three letters and more, two of Hangul, are prefixes; so is a single letter
// of a script without spaces.
func SearchTerms(question string) []Term {
	var out []Term
	add := func(t Term) {
		if len(out) < MaxTerms && !slices.ContainsFunc(out, func(o Term) bool { return o.Text == t.Text }) {
			out = append(out, t)
		}
	}
	splitText(question, func(p piece) {
		switch n := len(p.letters); {
		case p.kind == word:
			add(Term{string(p.letters), n >= minPrefix || n >= minHangul && unicode.Is(unicode.Hangul, p.letters[0])})
		case p.kind == symbol:
			add(Term{Text: string(p.letters)})
		case n == 1:
			add(Term{string(p.letters), true})
		default:
			for i := range n - 1 {
				add(Term{Text: string(p.letters[i : i+2])})
			}
		}
	})
	return out
}

// Terms are those that the item is found by: of its key, tags and text.
func (i *Item) Terms() []string {
	return append(append(Terms(i.Key), Terms(strings.Join(i.Tags, " "))...), Terms(i.Text)...)
}

type letterClass int

const (
	separator letterClass = iota // ends what was before it
	ignored                      // as if it were not there
	mark                         // goes with the letter before it
	word
	unspaced // a letter of a script without spaces
	symbol   // a term by itself
)

// piece is a run of letters of one class; a word is cut to MaxTerm.
type piece struct {
	kind    letterClass
	letters []rune
}

// splitText calls do for each piece of a text; the piece holds until do returns.
func splitText(text string, do func(piece)) {
	var p piece
	end := func() {
		if p.kind == word && len(p.letters) > MaxTerm {
			p.letters = p.letters[:MaxTerm]
		}
		if len(p.letters) > 0 {
			do(p)
		}
		p.kind, p.letters = separator, p.letters[:0]
	}
	for _, r := range foldText(text) {
		k := classOf(r)
		if k == mark {
			if k = p.kind; k == separator || k == symbol { // a mark on nothing
				k = separator
			}
		}
		switch {
		case k == ignored:
			continue
		case k == separator:
			end()
			continue
		case k != p.kind || k == symbol:
			end()
		}
		p.kind, p.letters = k, append(p.letters, r)
	}
	end()
}

// foldText is a text without case, without diacritics and in one spelling.
func foldText(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	text = norm.NFKD.String(strings.ToValidUTF8(text, " "))
	text = cases.Fold().String(text)
	return norm.NFC.String(strings.Map(stripDiacritics, norm.NFKD.String(text)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stripDiacritics takes diacritics away. Marks that tell letters apart, as the voiced ones of
// kana and the vowels of Indian scripts do, stay.
func stripDiacritics(r rune) rune {
	switch {
	case r >= 0x0300 && r <= 0x036f, r >= 0x1ab0 && r <= 0x1aff, r >= 0x1dc0 && r <= 0x1dff, r >= 0x20d0 && r <= 0x20ff,
		r >= 0xfe20 && r <= 0xfe2f,                                                       // combining, for Latin, Greek, Cyrillic
		r >= 0x0591 && r <= 0x05c7 && unicode.Is(unicode.Mn, r),                          // Hebrew points
		r >= 0x0610 && r <= 0x061a, r >= 0x064b && r <= 0x065f, r == 0x0670, r == 0x0640: // Arabic vowels, and the stroke that widens
		return -1
	}
	switch r { // letters with a stroke through them, which Unicode does not take apart
	case 'ø':
		return 'o'
	case 'ł':
		return 'l'
	case 'đ', 'ð':
		return 'd'
	case 'ħ':
		return 'h'
	case 'ı':
		return 'i'
	case 'ŧ':
		return 't'
	}
	return r
}

func classOf(r rune) letterClass {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return word
		}
		return separator
	case r == utf8.RuneError:
		return separator
	case r >= 0xfe00 && r <= 0xfe0f, unicode.Is(unicode.Cf, r): // how a character looks; joiners and soft hyphens
		return ignored
	case unicode.IsMark(r):
		if isUnspaced(r) {
			return unspaced
		}
		return mark
	case r == 'ー' || r == '々' || r == '〆':
		return unspaced
	case unicode.IsLetter(r) && isUnspaced(r):
		return unspaced
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return word
	case unicode.Is(unicode.So, r) || r >= 0x1f3fb && r <= 0x1f3ff:
		return symbol
	}
	return separator
}

// isUnspaced reports whether a letter is of a script that puts no spaces between
// words.
func isUnspaced(r rune) bool {
	return unicode.In(
		r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
	)
}
