package convo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// FormatOptions say how Format shows messages. With the zero value each message is lines of
// text: the role and the text; for a tool call its name and arguments; for a result the
// tool's name and the text; no ids.
type FormatOptions struct {
	// Markdown shows each message as a line with the role and the content in a fenced
	// block, so that Markdown and HTML in it have no effect.
	Markdown bool
	// SkipQuery omits the first user message.
	SkipQuery bool
	// CallNames shows only the name of a tool call.
	CallNames bool
	// Reasoning shows the reasoning of models.
	Reasoning bool
	// IDs shows the ids of messages and of calls.
	IDs bool
	// Note, if set, returns what is shown after the role, such as a time; "" shows nothing.
	// It is called with the position of the message in the list, in order, once for each
	// shown message.
	Note func(i int, m Message) string
	// MaxText, MaxResult and MaxArguments limit, in bytes, the text and reasoning of a
	// message, the text of a result, and the arguments of a call. Of a longer text about
	// two thirds of the limit are shown from its beginning and the rest from its end, with
	// the number of omitted bytes between them. 0 or less means no limit.
	MaxText, MaxResult, MaxArguments int
}

// Format shows messages as one text for a prompt, a log or a person. The same arguments
// give the same text. Time and memory are proportional to what is shown.
//
// The content of a message cannot imitate another message: in the text form every line of a
// message except for the first is indented by two spaces, so that only a role, "user: ...",
// stands at the beginning of a line; a name or an id with other than plain characters is
// quoted. Every line terminator counts as a line end. Control characters, invisible
// characters and characters that change the writing direction are written as \u001b, and
// invalid UTF-8 as U+FFFD. Line ends at the end of a text are omitted.
//
// A message without content is omitted, unless it is a result. Parts are named, never
// shown. For a prompt, wrap the text with Fence.
func Format(ms []Message, o FormatOptions) string {
	f := formatter{o: o}
	f.b.Grow(o.size(ms))
	query := o.SkipQuery
	for i := range ms {
		if query && ms[i].Role == User {
			query = false
			continue
		}
		f.message(i, &ms[i])
	}
	return f.b.String()
}

// size estimates the number of bytes that are shown.
func (o FormatOptions) size(ms []Message) int {
	n := 0
	for i := range ms {
		m := &ms[i]
		n += 24 + len(m.Name) + boundedLen(m.Text, o.textLimit(m))
		if o.Reasoning {
			n += 20 + boundedLen(m.Reasoning, o.MaxText)
		}
		for _, c := range m.Calls {
			n += 24 + len(c.Name) + boundedLen(c.Arguments, o.MaxArguments)
		}
	}
	return n
}

func boundedLen(text string, limit int) int {
	if limit > 0 && len(text) > limit {
		return limit + 64
	}
	return len(text)
}

// textLimit returns the number of bytes of a message's text that are shown.
func (o FormatOptions) textLimit(m *Message) int {
	if m.Role == Tool {
		return o.MaxResult
	}
	return o.MaxText
}

// formatter writes messages one after another.
type formatter struct {
	o FormatOptions
	b strings.Builder
}

func (f *formatter) message(i int, m *Message) {
	note := ""
	if f.o.Note != nil {
		note = f.o.Note(i, *m)
	}
	if f.o.Reasoning && m.Reasoning != "" {
		f.header(m, " thinks")
		f.tags(m.ID, "", note)
		f.body(m.Reasoning, f.o.MaxText, "")
	}
	if m.Role == Tool || m.Text != "" {
		f.header(m, "")
		f.tags(m.ID, m.CallID, note)
		f.body(m.Text, f.o.textLimit(m), "")
	}
	for _, c := range m.Calls {
		f.header(m, " calls", c.Name)
		f.tags(m.ID, c.ID, note)
		f.arguments(c.Arguments)
	}
	for _, p := range m.Parts {
		f.header(m, " attaches", p.Kind, p.Name, p.MIME)
		f.tags(m.ID, "", note)
		f.endLine()
	}
}

// header writes the role and action, with the names that are not empty.
func (f *formatter) header(m *Message, verb string, names ...string) {
	f.role(m)
	f.b.WriteString(verb)
	for _, s := range names {
		if s != "" {
			f.b.WriteByte(' ')
			f.writeName(s)
		}
	}
}

// role writes the role.
func (f *formatter) role(m *Message) {
	role, bold := string(m.Role), ""
	if f.o.Markdown {
		bold = "**"
	}
	switch m.Role {
	case Tool:
		role = "result"
	case System, User, Assistant:
	default:
		f.writeName(role)
		return
	}
	f.b.WriteString(bold + role + bold)
	if m.Role != Tool {
		return
	}
	if m.Name != "" {
		f.b.WriteString(" of ")
		f.writeName(m.Name)
	}
	if m.Failed {
		f.b.WriteString(" (failed)")
	}
}

// tags writes the ids, if the options say so, and the note, in brackets.
func (f *formatter) tags(id, call, note string) {
	var tags []string
	if f.o.IDs && id != "" {
		tags = append(tags, "id "+quoteName(id))
	}
	if f.o.IDs && call != "" {
		tags = append(tags, "call "+quoteName(call))
	}
	if note != "" {
		tags = append(tags, quoteNote(note))
	}
	if len(tags) == 0 {
		return
	}
	all := "[" + strings.Join(tags, ", ") + "]"
	if f.o.Markdown {
		all = codeSpan(all)
	}
	f.b.WriteString(" ")
	f.b.WriteString(all)
}

// writeName writes a name.
func (f *formatter) writeName(s string) {
	s = quoteName(s)
	if f.o.Markdown {
		s = codeSpan(s)
	}
	f.b.WriteString(s)
}

// body writes the content, in a code block of a language if one is given.
func (f *formatter) body(text string, limit int, language string) {
	text = strings.TrimRight(text, "\r\n")
	head, tail := headAndTail(text, limit)
	if f.o.Markdown {
		fence := strings.Repeat("`", max(longestBackticks(head), longestBackticks(tail), 2)+1)
		f.b.WriteString("\n\n" + fence + language + "\n")
		f.headAndTail(text, head, tail, "")
		if text != "" {
			f.b.WriteByte('\n')
		}
		f.b.WriteString(fence + "\n\n")
		return
	}
	if language == "" {
		f.b.WriteByte(':')
	}
	if text != "" && !strings.ContainsRune(lineTerminators, firstRune(text)) {
		f.b.WriteByte(' ')
	}
	f.headAndTail(text, head, tail, "  ")
	f.b.WriteByte('\n')
}

// headAndTail writes the beginning and the end of a text and the number of omitted bytes
// between them.
func (f *formatter) headAndTail(text, head, tail, indent string) {
	writeLines(&f.b, head, indent)
	if left := len(text) - len(head) - len(tail); left > 0 {
		fmt.Fprintf(&f.b, "\n%s[… %d of %d bytes are left out …]\n", indent, left, len(text))
		if tail != "" && !strings.ContainsRune(lineTerminators, firstRune(tail)) {
			f.b.WriteString(indent)
		}
		writeLines(&f.b, tail, indent)
	}
}

// arguments writes the arguments of a call.
func (f *formatter) arguments(args string) {
	if f.o.CallNames || strings.TrimSpace(args) == "" {
		f.endLine()
		return
	}
	if !f.o.Markdown && strings.ContainsAny(args, "\r\n") {
		var b bytes.Buffer
		if json.Compact(&b, []byte(args)) == nil {
			args = b.String()
		}
	}
	f.body(args, f.o.MaxArguments, "json")
}

// endLine ends a line without content.
func (f *formatter) endLine() {
	f.b.WriteByte('\n')
	if f.o.Markdown {
		f.b.WriteByte('\n')
	}
}

// quoteName returns a name or an id, quoted if it is not plain.
func quoteName(s string) string {
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./#@+:>", c) >= 0
		if !plain || c == ':' && i == len(s)-1 {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// quoteNote returns a note, quoted if it could be mistaken for something else.
func quoteNote(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("[]\"", r) }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
