package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-run/weir/internal/jsonkey"
)

// maxTries limits the number of places in a text at which a value is searched.
const maxTries = 500

// scanned has the parts of a text.
type scanned struct {
	values []any    // JSON values, in order; numbers are json.Number
	broken []string // why something that looks like an object is not one
	// rest is the text without reasoning and without the values.
	rest string
	// unclosed means that the text ends inside reasoning.
	unclosed bool
	tries    int
}

// scan finds the JSON values of a text outside of marked reasoning.
func scan(text string) *scanned {
	s := &scanned{}
	var rest strings.Builder
	for i := 0; i < len(text); {
		if t, n := tagAt(text[i:]); n > 0 {
			if t.closes { // the prompt template has opened it: everything before is reasoning
				*s = scanned{tries: s.tries}
				rest.Reset()
				i += n
				continue
			}
			end := t.end(text[i+n:])
			if end < 0 {
				s.unclosed = true
				break
			}
			i += n + end
			continue
		}
		if c := text[i]; c == '{' || c == '[' {
			if end := s.value(text[i:]); end > 0 {
				i += end
				continue
			}
		}
		rest.WriteByte(text[i])
		i++
	}
	s.rest = rest.String()
	return s
}

// value reads the JSON value at the start of a text and returns its length; 0 if the bracket is not the start of
// JSON.
func (s *scanned) value(text string) (length int) {
	if s.tries++; s.tries > maxTries {
		if s.tries == maxTries+1 {
			s.broken = append(s.broken, "it has too many brackets")
		}
		return 0
	}
	v, n, err := decode(text)
	if err == nil {
		s.values = append(s.values, v)
		return n
	}
	if _, ok := errors.AsType[*jsonkey.DuplicateError](err); ok {
		s.broken = append(s.broken, err.Error())
		return n
	}
	if !looksLikeJSON(text) {
		return 0
	}
	end := closing(text)
	if end > 0 {
		if v, n, e := decode(lenient(text[:end])); e == nil && n > 0 {
			s.values = append(s.values, v)
			return end
		}
	}
	if text[0] == '[' {
		return max(end, 0)
	}
	s.broken = append(s.broken, "it is not JSON: "+err.Error())
	if end > 0 {
		return end
	}
	return len(text)
}

// decode reads the JSON value at the start of a text and returns its length.
func decode(text string) (v any, n int, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, 0, err
	}
	n = int(d.InputOffset())
	if err := jsonkey.Check([]byte(text[:n])); err != nil {
		return nil, n, err
	}
	return v, n, nil
}

// object and list match the start of JSON, and of the almost-JSON that models write; a bracket in prose is followed
// by other characters.
var (
	object = regexp.MustCompile(`^\{\s*("|'|[A-Za-z_]\w*\s*:\s)`)
	list   = regexp.MustCompile(`^\[\s*["{\[]`)
)

func looksLikeJSON(text string) bool { return object.MatchString(text) || list.MatchString(text) }

// closing returns the length of the bracketed text at the start, -1 if the bracket is not closed.
func closing(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// lenient returns a text without comments and commas before closing brackets, and with escaped line ends and tabs inside
// strings.
func lenient(text string) string {
	text = withoutComments(text)
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case quoted && c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		case !quoted && c == ',':
			after := strings.TrimLeft(text[i+1:], " \t\r\n")
			if after != "" && (after[0] == '}' || after[0] == ']') {
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// withoutComments returns a text without the comments of JavaScript outside of strings.
func withoutComments(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		end := ""
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(text[i:], "//"):
			end = "\n"
		case !quoted && strings.HasPrefix(text[i:], "/*"):
			end = "*/"
		}
		if end == "" {
			b.WriteByte(c)
			continue
		}
		_, after, ok := strings.Cut(text[i+2:], end)
		if !ok {
			break
		}
		b.WriteByte('\n')
		i = len(text) - len(after) - 1
	}
	return b.String()
}

// tag is a pair of marks with which models separate reasoning from the answer.
type tag struct {
	opening, close string
	closes         bool
}

// tags returns those of open-weight models.
func tags() []tag {
	var out []tag
	for _, name := range []string{"think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis", "seed:think"} {
		out = append(out, tag{opening: "<" + name + ">", close: "</" + name + ">"})
	}
	return append(out, tag{opening: "[THINK]", close: "[/THINK]"}, tag{opening: "◁think▷", close: "◁/think▷"})
}

// tagAt returns the tag at the start of a text, and its length; 0 for none.
func tagAt(text string) (t tag, length int) {
	if text == "" || text[0] != '<' && text[0] != '[' && text[0] != "◁"[0] {
		return t, 0
	}
	for _, t := range tags() {
		if hasPrefixFold(text, t.opening) {
			return t, len(t.opening)
		}
		if hasPrefixFold(text, t.close) {
			t.closes = true
			return t, len(t.close)
		}
	}
	return t, 0
}

// end returns the position after the reasoning that t has opened, -1 if it is not closed.
func (t tag) end(text string) int {
	for depth, i := 1, 0; i < len(text); {
		switch {
		case hasPrefixFold(text[i:], t.opening):
			depth++
			i += len(t.opening)
		case hasPrefixFold(text[i:], t.close):
			i += len(t.close)
			if depth--; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return -1
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// bare removes a byte order mark, invisible characters and blanks at both ends of a text.
func bare(text string) string {
	return strings.TrimFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || slices.Contains([]rune{'\uFEFF', '\u200B', '\u200C', '\u200D', '\u2060'}, r)
	})
}

// answerOf is bare, and takes the final message of a text that begins with the channels in which gpt-oss writes:
// "<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...". Servers that do not know the
// format pass the marks on. A text without a final message stays as it is.
func answerOf(text string) string {
	text = bare(text)
	if !strings.HasPrefix(text, "<|channel|>") && !strings.HasPrefix(text, "<|start|>") {
		return text
	}
	i := strings.LastIndex(text, "<|channel|>final")
	if i < 0 {
		return text
	}
	_, message, ok := strings.Cut(text[i:], "<|message|>")
	if !ok {
		return text
	}
	message = bare(message)
	for _, end := range []string{"<|return|>", "<|end|>"} {
		message = bare(strings.TrimSuffix(message, end))
	}
	return message
}

// Plain returns an answer without leading reasoning, "" if the reasoning has no end.
func Plain(text string) string {
	text = answerOf(text)
	for {
		t, n := tagAt(text)
		if n == 0 {
			break
		}
		if t.closes {
			text = bare(text[n:])
			continue
		}
		end := t.end(text[n:])
		if end < 0 {
			return ""
		}
		text = bare(text[n+end:])
	}
	for _, t := range tags() { // the prompt template has opened it
		if i := strings.LastIndex(text, t.close); i >= 0 && !strings.Contains(text[:i], t.opening) {
			text = bare(text[i+len(t.close):])
		}
	}
	return text
}

// Values returns the JSON objects and lists in an answer, outside of reasoning. Numbers are json.Number.
func Values(text string) []any { return scan(answerOf(text)).values }
