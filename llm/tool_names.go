package llm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxToolName is the maximum length of a tool name that every vendor accepts, in bytes.
const maxToolName = 64

// hashSuffix is the length of the suffix that distinguishes a generated name: "_" and eight
// digits.
const hashSuffix = 9

// invalidNameChars matches characters that some API does not accept in a name, validName
// the names that all accept. They are compiled on first use.
var (
	invalidNameChars = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-zA-Z0-9_-]`) })        //nolint:gochecknoglobals // a compiled table
	validName        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) }) //nolint:gochecknoglobals // a compiled table
)

// ToolNameFor returns a name that every API accepts for a tool: the valid part of its name,
// and digits that distinguish it from others. Again distinguishes names that would be
// equal.
func ToolNameFor(name string, again int) string {
	of := name
	if again > 0 {
		of = fmt.Sprintf("%s %d", name, again)
	}
	sum := sha256.Sum256([]byte(of))
	kept := cmp.Or(strings.Trim(invalidNameChars().ReplaceAllString(name, "_"), "-"), "tool")
	if kept[0] >= '0' && kept[0] <= '9' {
		kept = "_" + kept
	}
	return kept[:min(len(kept), maxToolName-hashSuffix)] + "_" + hex.EncodeToString(sum[:4])
}

// UnambiguousJSON reports whether every parser reads a JSON text the same: it is UTF-8 and
// no string in it has half a surrogate pair, which Go reads as U+FFFD and others reject.
func UnambiguousJSON(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 >= len(text) {
			return true
		}
		text = text[at:]
		high, is := decodeEscape(text)
		if !is {
			text = text[2:] // an escape of one letter, or a letter beyond ASCII
			continue
		}
		text = text[6:]
		switch {
		case high < 0xd800 || high > 0xdfff:
		case high >= 0xdc00:
			return false
		default:
			low, is := decodeEscape(text)
			if !is || low < 0xdc00 || low > 0xdfff {
				return false
			}
			text = text[6:]
		}
	}
}

// decodeEscape returns the code unit of an escape such as \u00e9 at the start of a text.
func decodeEscape(text []byte) (unit int, is bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		d := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if c >= '0' && c <= '9' {
			d = int(c - '0')
		}
		if d < 0 {
			return 0, false
		}
		unit = unit*16 + d
	}
	return unit, true
}
