package convo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineTerminators are all characters that some program treats as the end of a line.
const lineTerminators = "\n\v\f\r\u0085\u2028\u2029"

// writeLines writes text with each line but the first indented, and invisible characters
// escaped.
func writeLines(b *strings.Builder, text, indent string) {
	from := 0 // everything before it is written
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		end := strings.ContainsRune(lineTerminators, r)
		switch {
		case end:
			if r == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				size = 2
			}
			b.WriteString(text[from:i])
			b.WriteByte('\n')
			if rest := text[i+size:]; rest != "" && !strings.ContainsRune(lineTerminators, firstRune(rest)) {
				b.WriteString(indent)
			}
		case r == utf8.RuneError && size == 1:
			b.WriteString(text[from:i])
			b.WriteRune(utf8.RuneError)
		case isInvisible(r):
			b.WriteString(text[from:i])
			if r > 0xffff {
				fmt.Fprintf(b, `\U%08x`, r)
			} else {
				fmt.Fprintf(b, `\u%04x`, r)
			}
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	b.WriteString(text[from:])
}

// isInvisible reports whether a character is invisible or affects its surroundings: control
// characters, characters that change the writing direction, and tag characters.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r >= 0xe0000 && r <= 0xe007f
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// headAndTail returns the beginning and the end of a text, together at most limit bytes. A
// text within the limit is all beginning.
func headAndTail(text string, limit int) (head, tail string) {
	if limit <= 0 || len(text) <= limit {
		return text, ""
	}
	h := limit - limit/3
	t := len(text) - limit/3
	for n := 0; n < utf8.UTFMax && h > 0 && !utf8.RuneStart(text[h]); n++ {
		h--
	}
	for n := 0; n < utf8.UTFMax && t < len(text) && !utf8.RuneStart(text[t]); n++ {
		t++
	}
	return text[:h], text[t:]
}

// longestBackticks returns the length of the longest run of backticks in a text.
func longestBackticks(text string) int {
	most, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

// codeSpan returns Markdown that shows one line verbatim.
func codeSpan(s string) string {
	fence := strings.Repeat("`", longestBackticks(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Fence puts a text between lines <name> and </name>, so that a prompt can delimit it. If
// the text contains such a tag, in any case and with spaces in it, the name is followed by
// the first number from 2 on that does not occur, <name-2>, so that nothing in the text can
// close it. The name consists of letters, digits, - and _; other characters are removed
// from it, and an empty name becomes "text". The time is proportional to the length of the
// text.
func Fence(text, name string) string {
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '-' || r == '_' {
			return r
		}
		return -1
	}, name)
	if name == "" {
		name = "text"
	}
	if used := tagNumbers(text, name); used[1] {
		n := 2
		for used[n] {
			n++
		}
		name += "-" + strconv.Itoa(n)
	}
	end := "\n"
	if text == "" || strings.HasSuffix(text, "\n") {
		end = ""
	}
	return "<" + name + ">\n" + text + end + "</" + name + ">"
}

// tagNumbers returns the numbers of the tags of that name in a text, 1 for a tag without a
// number. A tag with a number also counts as one without.
func tagNumbers(text, name string) map[int]bool {
	used := make(map[int]bool)
	for {
		at := strings.IndexByte(text, '<')
		if at < 0 {
			return used
		}
		text = strings.TrimLeftFunc(text[at+1:], func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
		if len(text) < len(name) || !strings.EqualFold(text[:len(name)], name) {
			continue
		}
		used[1] = true
		digits := strings.TrimPrefix(text[len(name):], "-")
		end := 0
		for end < len(digits) && end < 10 && digits[end] >= '0' && digits[end] <= '9' {
			end++
		}
		if n, err := strconv.Atoi(digits[:end]); err == nil {
			used[n] = true
		}
	}
}
