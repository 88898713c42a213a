package scrub

import (
	"html"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// matcher compares a text with runes, each of which may be encoded in the text: verbatim,
// escaped as in JSON, programs, shells, URLs, HTML or quoted-printable, and escaped
// repeatedly.
type matcher struct {
	text       string
	cut        bool // the text may end within the runes
	allowSpace bool // white space is allowed between the runes
	// failed caches pairs of remaining runes and positions without a match, so that the
	// time does not grow with the number of ways to read backslashes.
	failed map[[2]int]bool
}

// match returns where the runes that begin at i end, -1 if they do not match. seen counts
// the matched runes.
func (m *matcher) match(runes []rune, i, seen int) int {
	for len(runes) > 0 {
		if i >= len(m.text) {
			if m.cut && seen >= MinLength {
				return i
			}
			return -1
		}
		ends := m.runeEnds(runes[0], i)
		if len(ends) == 0 {
			if j := m.space(i); m.allowSpace && seen > 0 && j > i {
				i = j
				continue
			}
			if m.cut && seen >= MinLength && m.endsInEscape(i) {
				return len(m.text)
			}
			return -1
		}
		if len(ends) > 1 {
			return m.matchFirst(runes[1:], ends, seen+1)
		}
		i, runes, seen = ends[0], runes[1:], seen+1
	}
	return i
}

// matchFirst returns the match from the first of several positions that has one.
func (m *matcher) matchFirst(runes []rune, from []int, seen int) int {
	for _, i := range from {
		at := [2]int{len(runes), i}
		if m.failed[at] {
			continue
		}
		if end := m.match(runes, i, seen); end >= 0 {
			return end
		}
		if m.failed == nil {
			m.failed = make(map[[2]int]bool)
		}
		m.failed[at] = true
	}
	return -1
}

// endsInEscape reports whether the text ends inside an escape.
func (m *matcher) endsInEscape(i int) bool {
	return len(m.text)-i < 8 && strings.ContainsAny(m.text[i:i+1], `\%&='`)
}

// runeEnds returns the positions at which a rune that begins at i may end.
func (m *matcher) runeEnds(r rune, i int) []int {
	var buf [4]byte
	raw := string(buf[:utf8.EncodeRune(buf[:], r)])
	if strings.HasPrefix(m.text[i:], raw) && r != '\\' && m.text[i] != '%' && m.text[i] != '&' && m.text[i] != '=' && m.text[i] != '\'' {
		return []int{i + len(raw)}
	}
	var ends []int
	add := func(end int) {
		if end > i {
			ends = append(ends, end)
		}
	}
	if r == '\\' {
		for range maxSlashes {
			j := m.slash(i)
			if j == i {
				break
			}
			ends = append(ends, j)
			i = j
		}
		slices.Reverse(ends) // the longest first, unless some belong to the next rune
		return ends
	}
	j := m.slashes(i)
	for _, at := range []int{j, i} { // an apparent backslash may belong to the rune
		if strings.HasPrefix(m.text[at:], raw) {
			add(at + len(raw))
		}
		add(m.encodedRune(raw, r, at))
		if j == i {
			break
		}
	}
	if j > i {
		add(m.escapedRune(r, j))
	}
	if r == ' ' && strings.HasPrefix(m.text[i:], "+") {
		add(i + 1)
	}
	if r == '\'' {
		add(m.shell(i))
	}
	return ends
}

// maxSlashes is the maximum number of backslashes that may represent one.
const maxSlashes = 16

// slashes returns where the backslashes that begin at i end, in any encoding.
func (m *matcher) slashes(i int) int {
	for {
		j := m.slash(i)
		if j == i {
			return i
		}
		i = j
	}
}

// slash returns where a backslash that begins at i ends, in any encoding; i if there is
// none.
func (m *matcher) slash(i int) int {
	rest := m.text[i:]
	switch {
	case strings.HasPrefix(rest, `\u005c`), strings.HasPrefix(rest, `\u005C`):
		return i + 6
	case strings.HasPrefix(rest, `\`):
		return i + 1
	}
	return max(m.encodedRune(`\`, '\\', i), i)
}

// escapedRune reads the rune after a backslash: u0041, x41, U00000041, u{41}, n.
func (m *matcher) escapedRune(r rune, i int) int {
	rest := m.text[i:]
	for name, is := range map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'} {
		if r == is && rest != "" && rest[0] == name {
			return i + 1
		}
	}
	if inner, ok := strings.CutPrefix(rest, "u{"); ok {
		if digits, _, ok := strings.Cut(inner, "}"); ok && isHex(digits, r) {
			return i + len("u{}") + len(digits)
		}
	}
	for letter, digits := range map[byte]int{'u': 4, 'x': 2, 'U': 8} {
		if len(rest) > digits && rest[0] == letter && isHex(rest[1:1+digits], r) {
			return i + 1 + digits
		}
	}
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError && len(rest) > 5 && rest[0] == 'u' && isHex(rest[1:5], high) {
		if j := m.slashes(i + 5); j > i+5 && len(m.text) >= j+5 && m.text[j] == 'u' && isHex(m.text[j+1:j+5], low) {
			return j + 5
		}
	}
	return -1
}

func isHex(digits string, r rune) bool {
	n, err := strconv.ParseUint(digits, 16, 32)
	return err == nil && rune(n) == r
}

// encodedRune reads a rune in URL, quoted-printable or HTML encoding, also repeated: %2541,
// &amp;#65;.
func (m *matcher) encodedRune(raw string, r rune, i int) int {
	if i >= len(m.text) {
		return -1
	}
	switch m.text[i] {
	case '%', '=':
		return m.markedBytes(raw, m.text[i], i)
	case '&':
		i++
		for strings.HasPrefix(m.text[i:], "amp;") && (r != '&' || strings.HasPrefix(m.text[i+4:], "amp;") || strings.HasPrefix(m.text[i+4:], "#")) {
			i += 4
		}
		name, _, ok := strings.Cut(m.text[i:min(len(m.text), i+12)], ";")
		if ok && html.UnescapeString("&"+name+";") == raw {
			return i + len(name) + 1
		}
	}
	return -1
}

// markedBytes reads bytes that are each written as a mark and a hexadecimal number.
func (m *matcher) markedBytes(raw string, mark byte, i int) int {
	for k := range len(raw) {
		if i >= len(m.text) || m.text[i] != mark {
			return -1
		}
		for i++; mark == '%' && strings.HasPrefix(m.text[i:], "25") && raw[k] != '%'; i += 2 {
		}
		if len(m.text) < i+2 || !isHex(m.text[i:i+2], rune(raw[k])) {
			return -1
		}
		i += 2
	}
	return i
}

// shell reads an apostrophe as a shell writes it inside apostrophes: '\” and '"'"'.
func (m *matcher) shell(i int) int {
	if !strings.HasPrefix(m.text[i:], "'") {
		return -1
	}
	j := m.slashes(i + 1)
	if strings.HasPrefix(m.text[j:], "''") && j > i+1 {
		return j + 2
	}
	if strings.HasPrefix(m.text[j:], `"'`) {
		j = m.slashes(j + 2)
		if strings.HasPrefix(m.text[j:], `"'`) {
			return j + 2
		}
	}
	return -1
}

// space returns where the white space that begins at i ends, also if it is escaped.
func (m *matcher) space(i int) int {
	for i < len(m.text) {
		switch m.text[i] {
		case ' ', '\n', '\r', '\t':
			i++
		case '\\':
			j := m.slashes(i)
			if j >= len(m.text) || m.text[j] != 'n' && m.text[j] != 'r' {
				return i
			}
			i = j + 1
		default:
			return i
		}
	}
	return i
}

// firstBytes returns the bytes that a rune may begin with, in any encoding.
func firstBytes(r rune) iter.Seq[byte] {
	own := string(r)[:1]
	all := own + `\%&=`
	if r == ' ' {
		all += "+"
	}
	return func(yield func(byte) bool) {
		for i := range len(all) {
			if (i == 0 || all[i] != own[0]) && !yield(all[i]) {
				return
			}
		}
	}
}
