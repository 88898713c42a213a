package token

import "strings"

// splitter returns where the piece that begins at text[i] ends: tokens never
// cross from a piece to the next. i < len(text), and the end is past i.
//
// Both follow the patterns that tiktoken publishes (tiktoken_ext/openai_public.py),
// alternative by alternative, written out since a backtracking matcher is
// neither fast nor linear.
type splitter func(c *classes, text string, i int) int

// splitCl100k splits by
//
//	'(?i:[sdmt]|ll|ve|re)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+ | \s+(?!\S) | \s+
func splitCl100k(c *classes, text string, i int) int {
	if end := contraction(text, i); end > i {
		return end
	}
	k, width := c.at(text, i)
	if k&number != 0 {
		return digits(c, text, i)
	}
	if k&letter != 0 {
		return c.run(text, i+width, letter)
	}
	if k&newline == 0 {
		if end := c.run(text, i+width, letter); end > i+width {
			return end
		}
	}
	if end := symbols(c, text, i); end > i {
		for end < len(text) && (text[end] == '\n' || text[end] == '\r') {
			end++
		}
		return end
	}
	return spaces(c, text, i)
}

// splitO200k splits by
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+ | \s+(?!\S) | \s+
func splitO200k(c *classes, text string, i int) int {
	k, width := c.at(text, i)
	if k&number != 0 {
		return digits(c, text, i)
	}
	if end := casedWord(c, text, i, k, width); end > i {
		return contraction(text, end)
	}
	if end := symbols(c, text, i); end > i {
		for end < len(text) && (text[end] == '\n' || text[end] == '\r' || text[end] == '/') {
			end++
		}
		return end
	}
	return spaces(c, text, i)
}

// casedWord returns where the word of o200k's first two alternatives, without its
// contraction, ends; i if there is none. The rune at i has class k.
func casedWord(c *classes, text string, i int, k class, width int) int {
	start := i
	if k&(letter|newline) == 0 {
		start += width
	}
	// All heads, then tails. Where no tail follows, heads are given back up to
	// the last that is a tail too.
	end, both := start, -1
	for end < len(text) {
		h, w := c.at(text, end)
		if h&wordHeads == 0 {
			if h&wordTails != 0 {
				return c.run(text, end+w, wordTails)
			}
			break
		}
		end += w
		if h&wordTails != 0 {
			both = end
		}
	}
	switch {
	case both >= 0:
		return both
	case k&mark != 0: // not a prefix then, but head and tail itself
		return i + width
	case end > start:
		return end
	default:
		return i
	}
}

// contraction returns where an English contraction at text[i] ends; i if there is
// none. Ignoring case, as Unicode does it, makes the long s an s.
func contraction(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}
	switch text[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 >= len(text) {
			return i
		}
		switch [2]byte{text[i+1] | 0x20, text[i+2] | 0x20} {
		case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
			return i + 3
		}
	default:
		if strings.HasPrefix(text[i+1:], "ſ") {
			return i + 1 + len("ſ")
		}
	}
	return i
}

// digits returns where the one to three numbers at text[i] end.
func digits(c *classes, text string, i int) int {
	for range 3 {
		if i == len(text) {
			break
		}
		k, width := c.at(text, i)
		if k&number == 0 {
			break
		}
		i += width
	}
	return i
}

// symbols returns where a run of what is no letter, number or space, with or
// without one space before it, ends; i if there is none.
func symbols(c *classes, text string, i int) int {
	start := i
	if text[i] == ' ' {
		start++
	}
	end := start
	for end < len(text) {
		k, width := c.at(text, end)
		if k&(letter|number|space) != 0 {
			break
		}
		end += width
	}
	if end == start {
		return i
	}
	return end
}

// spaces returns where the run of white space at text[i] ends: behind its last line
// break if it has one, else before its last rune, which goes to the word that
// follows.
func spaces(c *classes, text string, i int) int {
	end, last, line := i, i, -1
	for end < len(text) {
		k, width := c.at(text, end)
		if k&space == 0 {
			break
		}
		last = end
		end += width
		if k&newline != 0 {
			line = end
		}
	}
	switch {
	case line >= 0:
		return line
	case end < len(text) && last > i:
		return last
	default:
		return end
	}
}
