package draw

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// width estimates the width of text in a sans-serif font, in font sizes.
func width(s string) float64 {
	w := 0.0
	for _, c := range clusters(s) {
		w += advance(c)
	}
	return w
}

// clusters splits text into visible characters: a letter with its marks, an emoji of several code points, a flag.
func clusters(s string) []string {
	var out []string
	begin, flag := 0, false
	var before rune
	for i, r := range s {
		regional := r >= 0x1f1e6 && r <= 0x1f1ff
		joined := i == 0 || before == zwj || r == zwj || unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) ||
			r >= 0x1f3fb && r <= 0x1f3ff || regional && flag
		if !joined {
			out = append(out, s[begin:i])
			begin = i
		}
		flag = regional && (!flag || !joined)
		before = r
	}
	if begin < len(s) {
		out = append(out, s[begin:])
	}
	return out
}

const zwj = '\u200d'

// advance overestimates, because text must not overflow in a slightly wider font.
func advance(cluster string) float64 {
	r, _ := utf8.DecodeRuneInString(cluster)
	switch {
	case cluster == "":
		return 0
	case strings.ContainsRune("iljtf.,:;'|!I[]()`", r):
		return 0.34
	case strings.ContainsRune("mwMW@%\u2026\u2192", r):
		return 0.95
	case r >= '0' && r <= '9', r == '_':
		return 0.62
	case r == ' ':
		return 0.32
	case r > 0x2e7f && !unicode.Is(unicode.Latin, r):
		return 1.3
	case r >= 0x2190:
		return 1.1
	case unicode.IsUpper(r):
		return 0.72
	}
	return 0.6
}

// fit cuts text to a width in parts of the font size, and says what is left
// over, "" if all of it fits. At a break between words if there is one.
func fit(s string, room float64) (line, rest string) {
	w, space, at := 0.0, 0, 0
	for _, c := range clusters(s) {
		if c == " " {
			space = at
		}
		if w += advance(c); w > room {
			if space > at/2 {
				return s[:space], strings.TrimSpace(s[space:])
			}
			return s[:at], s[at:]
		}
		at += len(c)
	}
	return s, ""
}

// shorten cuts text to a width, with an ellipsis.
func shorten(s string, room float64) string {
	if width(s) <= room {
		return s
	}
	w, at := advance("\u2026"), 0
	for _, c := range clusters(s) {
		if w += advance(c); w > room {
			break
		}
		at += len(c)
	}
	return strings.TrimRight(s[:at], " ") + "\u2026"
}

// shortenMiddle cuts text to a width and keeps its end, which distinguishes files.
func shortenMiddle(s string, room float64) string {
	if width(s) <= room {
		return s
	}
	const tail = 10
	parts := clusters(s)
	if len(parts) <= tail {
		return shorten(s, room)
	}
	end := strings.Join(parts[len(parts)-tail:], "")
	if width(end) > room/2 {
		return shorten(s, room)
	}
	return shorten(strings.Join(parts[:len(parts)-tail], ""), room-width(end)) + end
}

// isRightToLeft reports whether text is read from right to left: whether its first
// letter is Hebrew, Arabic or the like.
func isRightToLeft(s string) bool {
	for _, r := range s {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam) {
			return true
		}
		if unicode.IsLetter(r) {
			return false
		}
	}
	return false
}
