package convo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// FormatOptions say how Format shows messages. The zero value shows each as
// lines of text: who speaks and what they say; of a tool call its name and
// arguments and no id; of a result the tool's name and the text.
type FormatOptions struct {
	// Markdown shows each message as a line that says who speaks, with what they
	// say in a fenced block: no Markdown or HTML in it has an effect.
	Markdown bool
	// SkipQuery does not show the first message of a person.
	SkipQuery bool
	// CallNames shows of a tool call its name alone.
	CallNames bool
	// Reasoning shows that of models.
	Reasoning bool
	// IDs shows the ids of messages and of calls.
	IDs bool
	// Note, where set, returns what is shown beside who speaks, such as a time; ""
	// is nothing. It is called with the position of the message in the list, in
	// order, once for each message that is shown.
	Note func(i int, m Message) string
	// MaxText, MaxResult and MaxArguments bound what is shown of the text and
	// reasoning of a message, the text of a result, and the arguments of a call, in
	// bytes: of one that is longer about two thirds of that from its beginning and
	// the rest from its end, and between them how much is left out; 0 or less is all.
	MaxText, MaxResult, MaxArguments int
}

// Format shows messages as one text for a prompt, a log or a person. The same
// arguments give the same text, in time and memory in proportion to what is shown.
//
// What a message holds cannot pass for another message: as text every line but
// the first of a message is indented by two spaces, so that only who speaks
// stands at the beginning of a line, "user: ..."; a name or an id that is not
// made of plain characters is quoted. All that ends a line is a line end, control
// characters and characters that are invisible or turn the direction of writing
// are written as \u001b, and what is not UTF-8 as U+FFFD. Line ends at the end of
// a text are not shown.
//
// A message that says nothing is not shown, unless it is a result. Parts are named,
// never shown. For a prompt, put the text into a Fence.
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

// size is about how many bytes are shown.
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

// textLimit is how many bytes of a message's text are shown.
func (o FormatOptions) textLimit(m *Message) int {
	if m.Role == Tool {
		return o.MaxResult
	}
	return o.MaxText
}

// formatter writes messages one after the other.
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

// header writes who does what, with the names that are not empty.
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

// role writes who speaks.
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

// tags writes in brackets the ids, where the options say so, and the note.
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

// body writes what is said, of a language where it is in one.
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

// headAndTail writes the beginning and the end of a text, and what is left out.
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

// arguments writes those of a call.
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

// endLine ends a line that says all.
func (f *formatter) endLine() {
	f.b.WriteByte('\n')
	if f.o.Markdown {
		f.b.WriteByte('\n')
	}
}

// quoteName is a name or an id, quoted where it is not plain.
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

// quoteNote is a note, quoted where it could pass for something else.
func quoteNote(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("[]\"", r) }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
