// Package scrub removes secrets, such as keys and passwords, from texts, including encoded
// forms.
//
// It must not know where a text comes from or where it is shown.
package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

const (
	// MinLength is the minimum length of a secret in bytes: the letters of a shorter one
	// occur everywhere.
	MinLength = 4
	// minEncoded is the minimum length of a secret whose base64 and hexadecimal forms are
	// searched for inside longer ones.
	minEncoded = 8
)

// Set is a set of secrets. The zero value is empty. It may be read concurrently, but not
// while it is changed.
type Set struct {
	added            map[string]bool
	forms            []encodedForm // longest first
	formsByFirstByte [256][]int
}

// encodedForm is one encoding of a secret.
type encodedForm struct {
	runes       []rune
	replacement string
	allowSpace  bool // it may contain line breaks
}

// Add adds a secret and its replacement.
func (s *Set) Add(text, stand string) {
	if len(text) < MinLength || s.added[text] {
		return
	}
	if s.added == nil {
		s.added = make(map[string]bool)
	}
	s.added[text] = true
	once := encodingsOf(slices.Compact([]string{text, readAsLatin1(text)}))
	for _, as := range encodingsOf(once) {
		s.add(as, stand, false)
	}
	for _, as := range once {
		s.add(base64.StdEncoding.EncodeToString([]byte(as)), stand, true)
		s.add(base64.URLEncoding.EncodeToString([]byte(as)), stand, true)
		if len(as) < minEncoded {
			continue
		}
		for before := range 3 {
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				inside := e.EncodeToString(append(make([]byte, before), as...))
				s.add(inside[(before*8+5)/6:(before+len(as))*8/6], stand, true)
			}
		}
		digits := hex.EncodeToString([]byte(as))
		s.add(digits, stand, true)
		s.add(strings.ToUpper(digits), stand, true)
	}
	slices.SortStableFunc(s.forms, func(a, b encodedForm) int { return len(b.runes) - len(a.runes) })
	s.formsByFirstByte = [256][]int{}
	for i := range s.forms {
		for c := range firstBytes(s.forms[i].runes[0]) {
			s.formsByFirstByte[c] = append(s.formsByFirstByte[c], i)
		}
	}
}

// readAsLatin1 returns a text as a server reads it that takes the bytes of a header as
// ISO 8859-1, which RFC 9110 section 5.5 permits. A text of ASCII characters stays as it is.
func readAsLatin1(text string) string {
	out := make([]rune, len(text))
	for i := range len(text) {
		out[i] = rune(text[i])
	}
	return string(out)
}

// encodingsOf returns the texts and their encodings in JSON, URLs and HTML, which may be
// encoded once more.
func encodingsOf(texts []string) []string {
	out := slices.Clone(texts)
	for _, text := range texts {
		if quoted, err := json.Marshal(text); err == nil {
			out = append(out, string(quoted[1:len(quoted)-1]))
		}
		out = append(out, url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *Set) add(text, stand string, broken bool) {
	f := encodedForm{runes: []rune(text), replacement: stand, allowSpace: broken}
	if !slices.ContainsFunc(s.forms, func(g encodedForm) bool { return string(g.runes) == text }) {
		s.forms = append(s.forms, f)
	}
}

// IsEmpty reports whether the set has no secrets.
func (s *Set) IsEmpty() bool { return len(s.forms) == 0 }

// Scrub returns a text with all secrets replaced.
func (s *Set) Scrub(text string) string { return s.replace(text, false) }

// ScrubCut is Scrub for a text whose end was cut off: it also removes the beginning of a
// secret, of at least MinLength bytes, at its end.
func (s *Set) ScrubCut(text string) string { return s.replace(text, true) }

func (s *Set) replace(text string, cut bool) string {
	if s.IsEmpty() {
		return text
	}
	var out strings.Builder
	done := 0
	for i := 0; i < len(text); {
		n, stand := s.matchAt(text, i, cut)
		if n == 0 {
			i++
			continue
		}
		out.WriteString(text[done:i])
		out.WriteString(stand)
		i += n
		done = i
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// matchAt returns the length and the replacement of the secret at a position of a text, 0
// if there is none.
func (s *Set) matchAt(text string, i int, cut bool) (n int, stand string) {
	for _, k := range s.formsByFirstByte[text[i]] {
		f := &s.forms[k]
		m := matcher{text: text, cut: cut, allowSpace: f.allowSpace}
		if end := m.match(f.runes, i, 0); end > i && end-i > n {
			n, stand = end-i, f.replacement
		}
	}
	return n, stand
}
