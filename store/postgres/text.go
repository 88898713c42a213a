package postgres

import (
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weir-run/weir/store/codec"
)

// A column of type text holds valid UTF-8 without NUL, and a Go string may hold any bytes. Ids and names are stored
// with an escape for the bytes that PostgreSQL refuses. Other strings are stored as they are, so that they can be read
// in psql. The escape keeps prefixes of whole characters: the text of a prefix is a prefix of the text.

// escapeByte begins an escape: itself, or the byte that follows as two hexadecimal digits.
const escapeByte = '\x01'

const hexDigits = "0123456789abcdef"

// escapeText returns the text that stores a string.
func escapeText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, escapeByte) < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r == 0 || r == escapeByte {
			b = append(b, escapeByte, hexDigits[s[i]>>4], hexDigits[s[i]&15])
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// unescapeText is the inverse of escapeText.
func unescapeText(s string) string {
	if strings.IndexByte(s, escapeByte) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == escapeByte && i+2 < len(s) {
			b = append(b, hexValue(s[i+1])<<4|hexValue(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func hexValue(c byte) byte { return byte(strings.IndexByte(hexDigits, c)) & 15 }

// escapeTexts escapes all strings of a list.
func escapeTexts(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = escapeText(s)
	}
	return out
}

// text is a string in a query or a row. NULL is read as "".
type text string

// TextValue implements pgtype.TextValuer.
func (t text) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: escapeText(string(t)), Valid: true}, nil
}

// ScanText implements pgtype.TextScanner.
func (t *text) ScanText(v pgtype.Text) error {
	if codec.IsEncodedText(v.String) { // a decodingRow decodes it
		*t = text(v.String)
		return nil
	}
	*t = text(unescapeText(v.String))
	return nil
}

// into scans a column of escaped text into a string.
func into(s *string) *text { return (*text)(s) }

// likePrefix returns the pattern of LIKE that selects the texts that begin with prefix.
func likePrefix(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(escapeText(prefix)) + "%"
}
