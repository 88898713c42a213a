package token

import "github.com/weir-run/weir/convo"

// vendor selects the overheads of texts and the cost of images.
type vendor int

const (
	openai vendor = iota
	anthropic
	gemini
)

// overheads are a vendor's overheads, in tokens.
type overheads struct {
	message       int // around each message
	call          int // around each tool call, besides its name and arguments
	parallelCalls int // if a message has more than one call: once, and call again for each
	reply         int // for the start of the answer
	tools         int // once, if there are tools
	tool          int // around each definition
}

// overheadsOf documents the source of each number.
func overheadsOf(v vendor) overheads {
	switch v {
	case anthropic:
		// The system prompt for tools is published, 346 tokens (docs.claude.com, "Tool
		// use", pricing); the other numbers are not and are set high, and the learned
		// factor corrects them.
		return overheads{message: 4, call: 12, reply: 3, tools: 346, tool: 8}
	case gemini:
		// Only the roles are published.
		return overheads{message: 4, call: 8, reply: 0, tools: 8, tool: 8}
	default:
		// 3 a message, 1 for its role, 3 for the reply: OpenAI Cookbook, "How to
		// count tokens with tiktoken". 3 a call and 9 for definitions: measured
		// against the API by openai-chat-tokens. Calls in parallel, 20 and 3 a
		// call more: fits the reports at community.openai.com/t/538914.
		return overheads{message: 4, call: 3, parallelCalls: 20, reply: 3, tools: 9}
	}
}

// Counter counts the tokens sent to one model: exactly for text of a model with a known
// encoding, with the vendor's overheads, and by an estimate for other models. It is
// immutable, safe for concurrent use and deterministic, so that counts may be stored with
// messages. The zero value cannot be used: use NewCounter.
type Counter struct {
	encoding *Encoding    // nil with own
	own      *TextCounter // nil with encoding
	vendor   vendor
	exact    bool
}

// NewCounter returns the counter of a model: encoding is the name of its encoding, "" if
// unknown, which makes every count an estimate based on O200k. The vendor is "openai",
// "anthropic", "gemini" or another, which is treated like OpenAI. Another encoding is
// ErrUnknownEncoding.
func NewCounter(encoding, vendor string) (Counter, error) {
	c := Counter{exact: encoding != "", vendor: vendorOf(vendor)}
	if !c.exact {
		encoding = O200k
	}
	var err error
	c.encoding, err = Get(encoding)
	return c, err
}

func vendorOf(name string) vendor {
	switch name {
	case "anthropic":
		return anthropic
	case "gemini", "google":
		return gemini
	}
	return openai
}

// Exact reports whether texts are counted by the model's own encoding. If not, counts need
// a Factor: the PriorFactor until one is learned.
func (c Counter) Exact() bool { return c.exact }

// Encoding returns the encoding that texts are counted with; for an estimate it is not the
// model's, and nil with a counter of the program.
func (c Counter) Encoding() *Encoding { return c.encoding }

// Text returns the tokens of a text alone.
func (c Counter) Text(text string) int {
	if c.own != nil {
		return c.own.text(text)
	}
	n := c.encoding.Count(text)
	if !c.exact && c.vendor == gemini {
		n += extraDigitTokens(text)
	}
	return n
}

// extraDigitTokens returns how many more tokens text has if every digit is one, as for
// Gemini, instead of up to three digits in a row, as for OpenAI.
func extraDigitTokens(text string) int {
	n, run := 0, 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			run = 0
			continue
		}
		if run++; run%3 != 1 {
			n++
		}
	}
	return n
}

// Head returns the beginning of text with at most n tokens by the counter; see
// Encoding.Head.
func (c Counter) Head(text string, n int) string {
	if c.own != nil {
		return c.own.head(text, n)
	}
	return c.cutWithin(n, func(n int) string { return c.encoding.Head(text, n) })
}

// Tail returns the end of text with at most n tokens; see Encoding.Tail.
func (c Counter) Tail(text string, n int) string {
	if c.own != nil {
		return c.own.tail(text, n)
	}
	return c.cutWithin(n, func(n int) string { return c.encoding.Tail(text, n) })
}

// cutWithin requests fewer tokens of the encoding until the counter counts no more than n.
func (c Counter) cutWithin(n int, cut func(n int) string) string {
	for keep := n; keep > 0; {
		text := cut(keep)
		counted := c.Text(text)
		if counted <= n {
			return text
		}
		keep = keep * n / counted
	}
	return ""
}

// System returns the tokens of a system prompt, 0 for none.
func (c Counter) System(text string) int {
	if text == "" {
		return 0
	}
	return overheadsOf(c.vendor).message + c.Text(text)
}

// Message returns the tokens of m with its overhead: text, images and files, calls with
// name and arguments, and for a result the name and id of its call, which vendors include
// in some form. Reasoning is never sent and not counted. Native blocks count one token for
// each 4 bytes, because most are encrypted: remove them from m if they are not sent.
func (c Counter) Message(m convo.Message) int {
	r := overheadsOf(c.vendor)
	n := r.message + c.Text(m.Text)
	for _, p := range m.Parts {
		n += c.part(p)
	}
	for _, call := range m.Calls {
		n += r.call + c.Text(call.Name) + c.Text(call.Arguments)
		if c.vendor == anthropic {
			n += c.Text(call.ID)
		}
	}
	if len(m.Calls) > 1 {
		n += r.parallelCalls + r.call*len(m.Calls)
	}
	if m.Name != "" {
		n += 1 + c.Text(m.Name)
	}
	n += c.Text(m.CallID)
	return n + (len(m.Native)+3)/4
}

// Tool returns the tokens of one tool's definition; parameters is its JSON Schema.
func (c Counter) Tool(name, description string, parameters map[string]any) int {
	return overheadsOf(c.vendor).tool + c.Text(toolDefinition(c.vendor, name, description, parameters))
}

// RequestOverhead returns the tokens of a request besides its system prompt, messages and
// tools: the start of the reply and, if there are tools, their introduction.
func (c Counter) RequestOverhead(system bool, tools int) int {
	r := overheadsOf(c.vendor)
	n := r.reply
	if tools == 0 {
		return n
	}
	n += r.tools
	if c.vendor == openai {
		n += c.Text(namespaceStart) + c.Text(namespaceEnd)
		if system {
			n -= 3 // they share a message; 4 minus a line break
		}
	}
	return n
}

// PriorFactor returns the initial factor, before the vendor has reported usage: 100 if counts
// are exact, otherwise on the safe side of the measurements (docs/tokens.md).
func (c Counter) PriorFactor() Factor {
	switch {
	case c.exact:
		return 100
	case c.vendor == anthropic:
		return 160
	case c.vendor == gemini:
		return 110
	default:
		return 115
	}
}
