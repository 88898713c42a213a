package token

import "github.com/weir-run/weir/convo"

// vendor decides what surrounds a text and what an image costs.
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
	parallelCalls int // around more than one call in a message, and call again for each
	reply         int // what primes the answer
	tools         int // once, where there are tools
	tool          int // around each definition
}

// overheadsOf says where each number comes from.
func overheadsOf(v vendor) overheads {
	switch v {
	case anthropic:
		// The system prompt that tools bring is published, 346 tokens
		// (docs.claude.com, "Tool use", pricing); the rest is not and is set
		// high, the learned factor does the rest.
		return overheads{message: 4, call: 12, reply: 3, tools: 346, tool: 8}
	case gemini:
		// Nothing is published beyond the roles.
		return overheads{message: 4, call: 8, reply: 0, tools: 8, tool: 8}
	default:
		// 3 a message, 1 for its role, 3 for the reply: OpenAI Cookbook, "How to
		// count tokens with tiktoken". 3 a call and 9 for definitions: measured
		// against the API by openai-chat-tokens. Calls in parallel, 20 and 3 a
		// call more: fits the reports at community.openai.com/t/538914.
		return overheads{message: 4, call: 3, parallelCalls: 20, reply: 3, tools: 9}
	}
}

// Counter counts what one model is sent: exactly for text of a model whose
// encoding is known, by the vendor's rules for what is around it, and by an
// estimate for other models. It is immutable and safe for concurrent use, and
// counts the same thing the same way, so that counts may be kept by message.
// The zero value is of no use: use For.
type Counter struct {
	encoding *Encoding
	vendor   vendor
	exact    bool
}

// NewCounter returns the counter of a model: encoding is its encoding's name, "" where
// it has none that is known, which makes every count an estimate on O200k.
// The vendor is "openai", "anthropic", "gemini" or another, which is taken to
// follow OpenAI. Another encoding is ErrUnknownEncoding.
func NewCounter(encoding, vendor string) (Counter, error) {
	c := Counter{exact: encoding != ""}
	switch vendor {
	case "anthropic":
		c.vendor = anthropic
	case "gemini", "google":
		c.vendor = gemini
	}
	if !c.exact {
		encoding = O200k
	}
	var err error
	c.encoding, err = Get(encoding)
	return c, err
}

// Exact says that texts are counted by the model's own encoding. Where it is
// not, counts want a Factor: the Prior until one is learned.
func (c Counter) Exact() bool { return c.exact }

// Encoding is what texts are counted by; for an estimate it is not the model's.
func (c Counter) Encoding() *Encoding { return c.encoding }

// Text is the tokens of a text alone.
func (c Counter) Text(text string) int {
	n := c.encoding.Count(text)
	if !c.exact && c.vendor == gemini {
		n += extraDigitTokens(text)
	}
	return n
}

// extraDigitTokens is how many more tokens text has where every digit is one, as for
// Gemini, than where up to three in a row are one, as for OpenAI.
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

// Head returns the beginning of text that has at most n tokens, as the counter
// counts; see Encoding.Head.
func (c Counter) Head(text string, n int) string {
	return c.cutWithin(n, func(n int) string { return c.encoding.Head(text, n) })
}

// Tail returns the end of text that has at most n tokens; see Encoding.Tail.
func (c Counter) Tail(text string, n int) string {
	return c.cutWithin(n, func(n int) string { return c.encoding.Tail(text, n) })
}

// cutWithin asks for fewer tokens of the encoding until the counter counts no more
// than n.
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

// System is the tokens of a system prompt, 0 for none.
func (c Counter) System(text string) int {
	if text == "" {
		return 0
	}
	return overheadsOf(c.vendor).message + c.Text(text)
}

// Message is the tokens of m with what surrounds it: text, images and files,
// calls with name and arguments, and of a result the name and id of its call,
// which vendors put in one way or another. Reasoning is never sent and not
// counted. Native blocks count a token for each 4 bytes, since they are mostly
// encrypted: leave them out of m where they are not sent.
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

// Tool is the tokens of one tool's definition; parameters is its JSON Schema.
func (c Counter) Tool(name, description string, parameters map[string]any) int {
	return overheadsOf(c.vendor).tool + c.Text(toolDefinition(c.vendor, name, description, parameters))
}

// RequestOverhead is what a request costs besides its system prompt, messages and tools:
// the priming of the reply and, where there are tools, what introduces them.
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
			n -= 3 // they share a message; it is 4 less a line break
		}
	}
	return n
}

// PriorFactor is the factor to begin with, before a vendor has reported anything:
// 100 where counts are exact, else on the safe side of what was measured
// (docs/tokens.md).
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
