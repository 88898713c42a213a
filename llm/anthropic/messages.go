package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// Texts that are sent where the API requires content and the history has none.
const (
	// openingText is the user message before a history that begins with the assistant, and the only message of an
	// empty one.
	openingText = "(The conversation begins here.)"
	// continueText is the user message after a history that ends with the assistant, for models without prefill.
	continueText = "Continue."
	// emptyFailureText is the content of a failed result without text.
	emptyFailureText = "The tool failed and gave no message."
)

// block is one content block and the index of its message, -1 for none.
type block struct {
	encoded      contentBlock
	messageIndex int
	fields       blockFields // only Type and the fields needed here, if the block is sent unchanged
}

// apiTurn is one message of the API: consecutive blocks of one role.
type apiTurn struct {
	role string
	// results are sent first, because the API requires them directly after their calls.
	results, blocks []block
}

func (t *apiTurn) all() []block { return slices.Concat(t.results, t.blocks) }

// historyBuilder converts messages to turns.
type historyBuilder struct {
	p     *Provider
	model string
	// openCalls counts, by id, the calls of the assistant's turn that have no result yet.
	openCalls map[string]int
	turns     []*apiTurn
	// called has the names of the tools that were called, in order.
	called []string
}

// turns returns a request's messages without the leading system messages, which go into the system field. Consecutive
// messages of one role form one turn, with results first. A later system message becomes marked user text, because
// the API has no place for it that would leave the preceding messages in the cache.
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
	return h.p.errors.InvalidRequest("a message has the unknown role %q", m.Role)
}

// addBlocks appends blocks to the turn of a role. Without blocks it starts no turn.
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

// checkResults returns an error for a history in which a call has no result.
func (h *historyBuilder) checkResults() error {
	for id := range h.openCalls {
		return h.p.errors.InvalidRequest("the call %q has no result", id)
	}
	return nil
}

// result adds a tool result. A failed result may contain only text and must not be empty; its images and files follow
// the results.
func (h *historyBuilder) result(m *convo.Message, i int) error {
	waiting := h.openCalls[m.CallID]
	if waiting == 0 {
		return h.p.errors.InvalidRequest("a result belongs to the call %q, which the preceding message does not make", m.CallID)
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
			r.Content = append(r.Content, b.encoded)
		}
	}
	t.results = append(t.results, block{encoded: r, messageIndex: i, fields: blockFields{Type: r.Type}})
	return nil
}

// answer adds an assistant message: its native blocks unchanged if they are from this model, otherwise its text and
// calls.
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
		case b.Type == "text" && !vendorapi.IsSet(b.Citations):
			out = append(out, textBlock(b.Text, i))
		default:
			out = append(out, block{encoded: contentBlock{raw: raw[n]}, messageIndex: i, fields: b})
		}
	}
	// The last block of an answer must not be thinking.
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
		encoded:      contentBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage(c.Arguments)},
		messageIndex: i, fields: blockFields{Type: "tool_use"},
	}
}

// end adjusts a history that ends with the assistant to the form that this request may end with.
func (h *historyBuilder) end(prefill bool) {
	last := h.turns[len(h.turns)-1]
	if last.role != roleAssistant {
		return
	}
	at := len(last.blocks) - 1
	if b := last.blocks[at]; prefill && b.encoded.Type == "text" {
		last.blocks[at] = textBlock(strings.TrimRightFunc(b.encoded.Text, unicode.IsSpace), b.messageIndex)
		return
	}
	h.addBlocks(roleUser, textBlock(continueText, -1))
}

// inToolTurn reports whether the history ends with results of a turn whose answer did not begin with thinking. Such a
// turn must be completed without thinking.
func (h *historyBuilder) inToolTurn() bool {
	n := len(h.turns)
	if n < 2 || len(h.turns[n-1].results) == 0 {
		return false
	}
	return !h.turns[n-2].blocks[0].fields.thinks()
}

// isBlank reports whether the API would refuse a text as empty.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func textBlocks(s string, of int) []block {
	if isBlank(s) {
		return nil
	}
	return []block{textBlock(s, of)}
}

func textBlock(s string, of int) block {
	return block{encoded: contentBlock{Type: "text", Text: s}, messageIndex: of, fields: blockFields{Type: "text", Text: s}}
}
