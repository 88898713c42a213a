package token

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the set of rune properties that the splitters use, as bits.
type class uint8

const (
	upper    class = 1 << iota // Lu, Lt
	lower                      // Ll
	caseless                   // Lm, Lo
	mark                       // M
	number                     // N
	space                      // White_Space
	newline                    // carriage return and line feed; these are space too

	letter = upper | lower | caseless
	// The beginning and the end of a word for o200k.
	wordHeads = upper | caseless | mark
	wordTails = lower | caseless | mark
)

// classes holds the class of every rune.
type classes [unicode.MaxRune + 1]class

// runeClasses is the table, built once, because a lookup in unicode's range tables takes
// longer than all other work for a rune.
var runeClasses = sync.OnceValue(newClasses) //nolint:gochecknoglobals // an immutable table

func newClasses() *classes {
	c := new(classes)
	c.add(upper, unicode.Lu, unicode.Lt)
	c.add(lower, unicode.Ll)
	c.add(caseless, unicode.Lm, unicode.Lo)
	c.add(mark, unicode.M)
	c.add(number, unicode.N)
	c.add(space, unicode.White_Space)
	c['\r'] |= newline
	c['\n'] |= newline
	return c
}

func (c *classes) add(bit class, tables ...*unicode.RangeTable) {
	for _, t := range tables {
		for _, r := range t.R16 {
			for i := rune(r.Lo); i <= rune(r.Hi); i += rune(r.Stride) {
				c[i] |= bit
			}
		}
		for _, r := range t.R32 {
			for i := rune(r.Lo); i <= rune(r.Hi); i += rune(r.Stride) {
				c[i] |= bit
			}
		}
	}
}

// at returns the class and width in bytes of the rune at text[i]. A byte that is not UTF-8
// is a symbol.
func (c *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return c[b], 1
	}
	return c.wide(text[i:])
}

func (c *classes) wide(text string) (class, int) {
	r, width := utf8.DecodeRuneInString(text)
	return c[r], width // U+FFFD, which replaces invalid bytes, is a symbol
}

// run returns where the runes from text[i] on that have one of the bits end.
func (c *classes) run(text string, i int, bits class) int {
	for i < len(text) {
		k, width := c.at(text, i)
		if k&bits == 0 {
			break
		}
		i += width
	}
	return i
}
