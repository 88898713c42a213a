package scrub_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"mime/quotedprintable"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/scrub"
)

// Secrets are of every kind that an encoding changes.
func secrets() []string {
	return []string{
		"hunter2", "correct horse battery staple", `pa"ss\wo'rd`, `\\"\"`, "a/b+c=d&e%20f", "line\none\ttwo", "pässwörd-日本-😀", `'"'"'`,
		"<b>bold</b>", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789", "$(id) `x` ${HOME}", "100%&amp;\\u0041", "trailing\\", "    spaced    ",
	}
}

func jsonOf(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// readAsLatin1 is what a server makes of the bytes of a text that reads headers as ISO 8859-1.
func readAsLatin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// encodings returns the ways in which an echo may write a text.
func encodings() map[string]func(string) string {
	escapeAll := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if r > 0xFFFF {
				r -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
				continue
			}
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		return b.String()
	}
	percentAll := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02x", s[i])
		}
		return b.String()
	}
	return map[string]func(string) string{
		"Latin-1":            readAsLatin1,
		"Latin-1 in JSON":    func(s string) string { return jsonOf(readAsLatin1(s)) },
		"raw":                func(s string) string { return s },
		"JSON":               jsonOf,
		"JSON in JSON":       func(s string) string { return jsonOf(jsonOf(s)) },
		"JSON thrice":        func(s string) string { return jsonOf(jsonOf(jsonOf(s))) },
		"JSON \\u":           escapeAll,
		"JSON \\u in JSON":   func(s string) string { return jsonOf(escapeAll(s)) },
		"JSON with slashes":  func(s string) string { return strings.ReplaceAll(jsonOf(s), "/", `\/`) },
		"query":              url.QueryEscape,
		"path":               url.PathEscape,
		"query twice":        func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"every byte percent": percentAll,
		"JSON in a query":    func(s string) string { return url.QueryEscape(jsonOf(s)) },
		"query in JSON":      func(s string) string { return jsonOf(url.QueryEscape(s)) },
		"HTML":               html.EscapeString,
		"HTML twice":         func(s string) string { return html.EscapeString(html.EscapeString(s)) },
		"JSON in HTML":       func(s string) string { return html.EscapeString(jsonOf(s)) },
		"HTML in JSON":       func(s string) string { return jsonOf(html.EscapeString(s)) },
		"base64":             func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 for URLs":    func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		"basic auth":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
		"base64 of JSON":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte(`{"key":` + jsonOf(s) + `}`)) },
		"base64 in JSON":     func(s string) string { return jsonOf(base64.StdEncoding.EncodeToString([]byte("k=" + s + ";"))) },
		"hexadecimal":        func(s string) string { return hex.EncodeToString([]byte(s)) },
		"Go":                 strconv.Quote,
		"Go in ASCII":        strconv.QuoteToASCII,
		"shell":              func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"shell by quotes":    func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
		"shell in JSON":      func(s string) string { return jsonOf("'" + strings.ReplaceAll(s, "'", `'\''`) + "'") },
		"quoted-printable": func(s string) string {
			var b strings.Builder
			w := quotedprintable.NewWriter(&b)
			w.Binary = true
			_, _ = w.Write([]byte(s))
			_ = w.Close()
			return b.String()
		},
	}
}

func TestEverySecretIsTakenOutOfEveryEncoding(t *testing.T) {
	for _, secret := range secrets() {
		var s scrub.Set
		s.Add(secret, "[gone]")
		for name, encode := range encodings() {
			if len(secret) < 8 && (strings.HasPrefix(name, "base64 ") || name == "basic auth" || name == "hexadecimal") && name != "base64 for URLs" {
				continue // is in a longer one, where its letters may be anybody's
			}
			echo := "before " + encode(secret) + " behind"
			got := s.Scrub(echo)
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") || !strings.Contains(got, "[gone]") {
				t.Errorf("%q, %s: %q became %q", secret, name, echo, got)
			}
			if strings.Contains(got, secret) {
				t.Errorf("%q, %s: is left in %q", secret, name, got)
			}
		}
	}
}

func TestTextWithoutSecretIsUnchanged(t *testing.T) {
	var s scrub.Set
	for _, secret := range secrets() {
		s.Add(secret, "[gone]")
	}
	s.Add("abc", "[gone]") // too short
	for _, text := range []string{
		"", "abc", "nothing of the kind", `{"a": "\u0041\\ \" %20 &amp; =3D '\''"}`, "hunter", "unter2", strings.Repeat(`\`, 50), strings.Repeat("%25", 50), "&&&&amp;amp;;",
	} {
		if got := s.Scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none scrub.Set
	if got := none.ScrubCut("text"); got != "text" {
		t.Errorf("an empty set made %q", got)
	}
}

func TestTruncatedSecretAtTheEndOfTextIsRemoved(t *testing.T) {
	const secret = `correct "horse" battery`
	var s scrub.Set
	s.Add(secret, "[gone]")
	for _, encode := range []func(string) string{func(s string) string { return s }, jsonOf, url.QueryEscape, html.EscapeString} {
		whole := "x: " + encode(secret)
		for n := len("x: ") + 6; n < len(whole); n++ {
			if got := s.ScrubCut(whole[:n]); strings.Contains(got, "corr") {
				t.Errorf("of %q is left %q", whole[:n], got)
			}
		}
	}
}

func FuzzTakingSecretsOutNeverPanicsAndLeavesNone(f *testing.F) {
	for _, secret := range secrets() {
		f.Add(secret, "x"+jsonOf(secret)+`\u00`, true)
	}
	f.Fuzz(func(t *testing.T, secret, text string, cut bool) {
		var s scrub.Set
		s.Add(secret, "[]")
		if cut {
			s.ScrubCut(text)
		}
		if got := s.Scrub(text); len(secret) >= scrub.MinLength && !strings.ContainsAny(secret, "[]") && strings.ToValidUTF8(secret, "") == secret && strings.Contains(got, secret) &&
			!strings.Contains(strings.ReplaceAll(text, secret, ""), secret) {
			t.Errorf("%q is left in %q", secret, got)
		}
	})
}
