package convo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineTerminators are the characters that something takes for the end of a line.
const lineTerminators = "\n\v\f\r\u0085\u2028\u2029"

// writeLines writes text with each line but the first indented, and what cannot
// be seen in a form that can.
func writeLines(b *strings.Builder, text, indent string) {
	from := 0 // what is before it is written
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

// isInvisible reports whether a character acts on what is around it, or says what
// nobody sees: control characters, those that turn the direction of writing, and
// tags.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r >= 0xe0000 && r <= 0xe007f
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// headAndTail are the beginning and the end of a text that are at most limit bytes
// together; where it is no longer it is all beginning.
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

// longestBackticks is the longest run of backticks in a text.
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

// codeSpan is Markdown that shows one line as it is.
func codeSpan(s string) string {
	fence := strings.Repeat("`", longestBackticks(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Fence puts a text between lines <name> and </name>, so that a prompt can say
// where it begins and ends. Where the text has such a tag itself, in any case and
// with spaces in it, the name is followed by the first number from 2 on that it
// does not have, <name-2>: nothing in the text can end it. The name is made of
// letters, digits, - and _; other characters are left out of it, and where none
// is left it is "text". It takes time in proportion to the length of the text.
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

// tagNumbers are the numbers of the tags of that name in a text, 1 where there is
// none behind it. A tag with a number is also one without.
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
