package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainPath parses src as a plain reference, with white space around it: a.b.c, or with members
// whose names are quoted, as in a["b c"].d.
func plainPath(src string) (Ref, bool) {
	start := len(src) - len(strings.TrimLeft(src, " \t\r\n"))
	s := strings.TrimRight(src[start:], " \t\r\n")
	root, rest := cutName(s)
	if root == "" || isLiteral(root) || Reserved(root) {
		return Ref{}, false
	}
	var path []string
	for rest != "" {
		name, after, ok := cutMember(rest)
		if !ok {
			return Ref{}, false
		}
		path, rest = append(path, name), after
	}
	return Ref{Root: root, Path: path, Offset: start, Len: len(s)}, true
}

// Path returns the names of a source that is a plain reference, as Program.Path does; nil for any
// other. It compiles nothing.
func Path(src string) []string {
	r, ok := plainPath(src)
	if !ok {
		return nil
	}
	return append([]string{r.Root}, r.Path...)
}

// cutMember cuts .name or ["name"] from the start of s.
func cutMember(s string) (name, after string, ok bool) {
	if quoted, found := strings.CutPrefix(s, "["); found {
		name, after, ok = cutQuoted(strings.TrimLeft(quoted, " "))
		after, found = strings.CutPrefix(strings.TrimLeft(after, " "), "]")
		return name, after, ok && found
	}
	s, ok = strings.CutPrefix(s, ".")
	name, after = cutName(s)
	return name, after, ok && name != "" && !isLiteral(name)
}

// cutName cuts an identifier from the start of s; "" if s does not begin with one.
func cutName(s string) (name, after string) {
	n := 0
	for n < len(s) && nameByte(s[n]) && (n > 0 || s[n] < '0' || s[n] > '9') {
		n++
	}
	return s[:n], s[n:]
}

// cutQuoted cuts a string literal on one line from the start of s. Of the escape sequences it
// knows those of quotes and the backslash; a literal with another one is left to CEL.
func cutQuoted(s string) (text, after string, ok bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' || strings.HasPrefix(s, strings.Repeat(s[:1], 3)) {
		return "", s, false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), s[i+1:], true
		case c == '\n' || c == '\r':
			return "", s, false
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(s) && strings.IndexByte(`"'\`, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		default:
			return "", s, false
		}
	}
	return "", s, false
}

// String returns the reference as it is written: a.b["c d"].
func (r Ref) String() string { return Join(r.Root, r.Path...) }

// Join returns the reference to a member of a root name, as expressions write it: a.b.c, and
// a["b c"] where a name is no identifier.
func Join(root string, path ...string) string {
	var b strings.Builder
	b.WriteString(root)
	for _, name := range path {
		if isName(name) && !isLiteral(name) {
			b.WriteString("." + name)
		} else {
			b.WriteString("[" + Quote(name) + "]")
		}
	}
	return b.String()
}

// Quote returns a string literal of the language for a text.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == utf8.RuneError:
			b.WriteString(`\u` + strconv.FormatInt(0x10000+int64(c), 16)[1:])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isName reports whether s is an identifier.
func isName(s string) bool {
	name, after := cutName(s)
	return name != "" && after == ""
}

func nameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
