package expr

import "strings"

// closing returns the offset of the "}}" that ends the expression starting at s[from:], or
// -1: the first one outside string literals and brackets.
func closing(s string, from int) int {
	depth := 0
	for i := from; i < len(s); {
		switch c := s[i]; c {
		case '"', '\'':
			raw := i > from && (s[i-1] == 'r' || s[i-1] == 'R') && !wordBefore(s, i-1, from)
			i = afterLiteral(s, i, raw)
			continue
		case '(', '[', '{':
			depth++
		case ')', ']':
			depth--
		case '}':
			if depth <= 0 && strings.HasPrefix(s[i:], "}}") {
				return i
			}
			depth--
		}
		i++
	}
	return -1
}

// wordBefore reports whether the letter at s[i] belongs to a longer word; the
// prefixes of literals are r, b, rb and br.
func wordBefore(s string, i, from int) bool {
	if i > from && (s[i-1] == 'b' || s[i-1] == 'B') {
		i--
	}
	return i > from && nameByte(s[i-1])
}

// afterLiteral returns the offset after the string literal that starts at s[i].
func afterLiteral(s string, i int, raw bool) int {
	quote := s[i : i+1]
	if strings.HasPrefix(s[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for j := i + len(quote); j < len(s); j++ {
		switch {
		case s[j] == '\\' && !raw:
			j++
		case strings.HasPrefix(s[j:], quote):
			return j + len(quote)
		}
	}
	return len(s)
}
