package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The search works on terms. A term is one of:
//
//   - a word, without case, diacritics and punctuation;
//   - a pair of adjacent letters in a script that has no spaces between words; the last
//     letter of such a sequence is also a term by itself;
//   - a symbol, such as an emoji.
//
// Items and queries are split by the same code, so that all stores agree, and every
// text is a valid query.
//
// Terms contain letters, digits, marks and symbols. They contain no spaces and no
// control characters; their ASCII characters are letters and digits only.

// Bounds of terms.
const (
	// MaxTerm is the length to which words are cut, in letters.
	MaxTerm = 64
	// MaxTerms is the number of terms of a query: its first distinct ones.
	MaxTerms = 32

	minPrefix = 3 // letters that make a word a prefix
	minHangul = 2 // the same for Hangul, where a letter is a syllable
)

// Term is a search term.
type Term struct {
	Text string
	// Prefix means that the term also matches terms that begin with Text.
	Prefix bool
}

// Terms returns the terms of a text, in order.
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

// SearchTerms returns the distinct search terms of a query text, at most MaxTerms.
// Words of three letters or more (two in Hangul) are prefixes, and so is a single
// letter of a script without spaces.
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

// Terms returns the terms of the item's key, tags and text.
func (i *Item) Terms() []string {
	return append(append(Terms(i.Key), Terms(strings.Join(i.Tags, " "))...), Terms(i.Text)...)
}

type letterClass int

const (
	separator letterClass = iota // ends the piece before it
	ignored                      // removed
	mark                         // belongs to the letter before it
	word
	unspaced // a letter of a script without spaces
	symbol   // one term
)

// piece is a sequence of letters of one class. Words are cut to MaxTerm.
type piece struct {
	kind    letterClass
	letters []rune
}

// splitText calls do for each piece of a text. The piece is valid until do returns.
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
			if k = p.kind; k == separator || k == symbol { // no letter before the mark
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

// foldText removes case and diacritics and normalizes the text.
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

// stripDiacritics drops diacritics. It keeps marks that distinguish letters, such as
// voiced kana and the vowel signs of Indian scripts.
func stripDiacritics(r rune) rune {
	switch {
	case r >= 0x0300 && r <= 0x036f, r >= 0x1ab0 && r <= 0x1aff, r >= 0x1dc0 && r <= 0x1dff, r >= 0x20d0 && r <= 0x20ff,
		r >= 0xfe20 && r <= 0xfe2f,                                                       // combining, for Latin, Greek, Cyrillic
		r >= 0x0591 && r <= 0x05c7 && unicode.Is(unicode.Mn, r),                          // Hebrew points
		r >= 0x0610 && r <= 0x061a, r >= 0x064b && r <= 0x065f, r == 0x0670, r == 0x0640: // Arabic vowels and tatweel
		return -1
	}
	switch r { // letters with a stroke, which Unicode does not decompose
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
	case r >= 0xfe00 && r <= 0xfe0f, unicode.Is(unicode.Cf, r): // variation selectors, joiners and soft hyphens
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

// isUnspaced reports whether a letter belongs to a script without spaces between
// words.
func isUnspaced(r rune) bool {
	return unicode.In(
		r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
	)
}
