package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// What is said where the wire demands words and the history has none.
const (
	// openingText is said by the user before a history that begins with the
	// assistant, and where no message says anything.
	openingText = "(The conversation begins here.)"
	// continueText is said by the user after a history that ends with the assistant,
	// where the model does not go on from that.
	continueText = "Continue."
	// emptyFailureText is the result of a tool that failed without a word.
	emptyFailureText = "The tool failed and gave no message."
)

// block is one content block and the index of the message it is of, -1 for none.
type block struct {
	wire         contentBlock
	messageIndex int
	fields       blockFields // Type, and what is needed of a block that is sent verbatim
}

// apiTurn is one message of the wire: what one side says before the other does.
type apiTurn struct {
	role string
	// results are sent first: the API wants them at once after their calls.
	results, blocks []block
}

func (t *apiTurn) all() []block { return slices.Concat(t.results, t.blocks) }

// historyBuilder makes turns of messages.
type historyBuilder struct {
	p     *Provider
	model string
	// openCalls are the ids of the calls of the assistant's turn that have no result
	// yet, each with how often.
	openCalls map[string]int
	turns     []*apiTurn
	// called are the tools that were called, in order.
	called []string
}

// turns are a request's messages on this wire, without the leading system
// messages, which are texts of their own. Messages of one side are one turn;
// results come first in the user's; a later message of the system is a text of
// the user's marked as the system's, since the wire has no place for it that
// would leave what came before in the cache.
func (p *Provider) turns(req *llm.Request, from int) (*historyBuilder, error) {
	h := &historyBuilder{p: p, model: req.Model, openCalls: map[string]int{}}
	for i := from; i < len(req.Messages); i++ {
		if err := h.add(&req.Messages[i], i); err != nil {
			return nil, err
		}
	}
	if err := h.checkResults(); err != nil {
		return nil, err
	}
	if len(h.turns) == 0 || h.turns[0].role == roleAssistant {
		first := &apiTurn{role: roleUser, blocks: []block{textBlock(openingText, -1)}}
		h.turns = slices.Insert(h.turns, 0, first)
	}
	return h, nil
}

func (h *historyBuilder) add(m *convo.Message, i int) error {
	if len(m.Parts) > 0 && (m.Role == convo.Assistant || m.Role == convo.System) {
		return h.p.errors.InvalidRequest("a message of the role %q cannot hold an image or a file", m.Role)
	}
	switch m.Role {
	case convo.System:
		if !isBlank(m.Text) {
			h.addBlocks(roleUser, textBlock("<system>\n"+m.Text+"\n</system>", i))
		}
		return nil
	case convo.User:
		parts, err := h.p.parts(m.Parts, i)
		if err != nil {
			return err
		}
		h.addBlocks(roleUser, append(textBlocks(m.Text, i), parts...)...)
		return nil
	case convo.Tool:
		return h.result(m, i)
	case convo.Assistant:
		if err := h.checkResults(); err != nil {
			return err
		}
		h.addBlocks(roleAssistant, h.answer(m, i)...)
		return nil
	}
	return h.p.errors.InvalidRequest("a message has the role %q", m.Role)
}

// addBlocks adds blocks to the turn of a side; none begin no turn.
func (h *historyBuilder) addBlocks(role string, blocks ...block) {
	if len(blocks) == 0 {
		return
	}
	t := h.turnOf(role)
	t.blocks = append(t.blocks, blocks...)
}

func (h *historyBuilder) turnOf(role string) *apiTurn {
	if len(h.turns) == 0 || h.turns[len(h.turns)-1].role != role {
		h.turns = append(h.turns, &apiTurn{role: role})
	}
	return h.turns[len(h.turns)-1]
}

// checkResults refuses a history in which a call has no result.
func (h *historyBuilder) checkResults() error {
	for id := range h.openCalls {
		return h.p.errors.InvalidRequest("the call %q has no result", id)
	}
	return nil
}

// result adds a tool's result. One that failed must have words and nothing
// else: its images and files follow the results.
func (h *historyBuilder) result(m *convo.Message, i int) error {
	waiting := h.openCalls[m.CallID]
	if waiting == 0 {
		return h.p.errors.InvalidRequest("a result answers the call %q, which is not among those of the message before", m.CallID)
	}
	if h.openCalls[m.CallID]--; waiting == 1 {
		delete(h.openCalls, m.CallID)
	}
	parts, err := h.p.parts(m.Parts, i)
	if err != nil {
		return err
	}
	r := contentBlock{Type: "tool_result", ToolUseID: m.CallID, IsError: m.Failed}
	said := m.Text
	if m.Failed && isBlank(said) {
		said = emptyFailureText
	}
	if !isBlank(said) {
		r.Content = append(r.Content, contentBlock{Type: "text", Text: said})
	}
	t := h.turnOf(roleUser)
	if m.Failed {
		t.blocks = append(t.blocks, parts...)
	} else {
		for _, b := range parts {
			r.Content = append(r.Content, b.wire)
		}
	}
	t.results = append(t.results, block{wire: r, messageIndex: i, fields: blockFields{Type: r.Type}})
	return nil
}

// answer is an assistant's message: its native blocks verbatim where they are
// this model's, else its words and calls.
func (h *historyBuilder) answer(m *convo.Message, i int) []block {
	pieces, raw := h.p.unpack(m, h.model)
	calls := m.Calls
	if pieces == nil {
		out := textBlocks(m.Text, i)
		for _, c := range calls {
			out = append(out, h.call(c, i))
		}
		return out
	}
	var out []block
	for n, b := range pieces {
		switch {
		case b.Type == "tool_use":
			out = append(out, h.call(calls[0], i))
			calls = calls[1:]
		case b.Type == "text" && isBlank(b.Text):
		case b.Type == "text" && !wire.IsSet(b.Citations):
			out = append(out, textBlock(b.Text, i))
		default:
			out = append(out, block{wire: contentBlock{raw: raw[n]}, messageIndex: i, fields: b})
		}
	}
	// The last block of an answer must not be a thought.
	for len(out) > 0 && out[len(out)-1].fields.thinks() {
		out = out[:len(out)-1]
	}
	return out
}

func (h *historyBuilder) call(c convo.Call, i int) block {
	h.openCalls[c.ID]++
	if !slices.Contains(h.called, c.Name) {
		h.called = append(h.called, c.Name)
	}
	return block{
		wire:         contentBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage(c.Arguments)},
		messageIndex: i, fields: blockFields{Type: "tool_use"},
	}
}

// end makes a history that ends with the assistant one that this request may
// end with.
func (h *historyBuilder) end(prefill bool) {
	last := h.turns[len(h.turns)-1]
	if last.role != roleAssistant {
		return
	}
	at := len(last.blocks) - 1
	if b := last.blocks[at]; prefill && b.wire.Type == "text" {
		last.blocks[at] = textBlock(strings.TrimRightFunc(b.wire.Text, unicode.IsSpace), b.messageIndex)
		return
	}
	h.addBlocks(roleUser, textBlock(continueText, -1))
}

// inToolTurn says that the history ends with results of a turn whose answer did not
// begin with a thought: such a turn is finished without thinking.
func (h *historyBuilder) inToolTurn() bool {
	n := len(h.turns)
	if n < 2 || len(h.turns[n-1].results) == 0 {
		return false
	}
	return !h.turns[n-2].blocks[0].fields.thinks()
}

// isBlank says that a text is one that the API refuses.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func textBlocks(s string, of int) []block {
	if isBlank(s) {
		return nil
	}
	return []block{textBlock(s, of)}
}

func textBlock(s string, of int) block {
	return block{wire: contentBlock{Type: "text", Text: s}, messageIndex: of, fields: blockFields{Type: "text", Text: s}}
}
