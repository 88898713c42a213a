package anthropic

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// native is what Message.Native holds: the blocks of an answer, all of them
// and in order, and who made them.
type native struct {
	Host   string            `json:"host"`
	Model  string            `json:"model"`
	Blocks []json.RawMessage `json:"blocks"`
}

// blockFields is what of a content block Weir must know.
type blockFields struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	// Citations make a text more than its words.
	Citations json.RawMessage `json:"citations"`
}

func (p blockFields) thinks() bool { return p.Type == "thinking" || p.Type == "redacted_thinking" }

// isRedundant says that a message's own fields say all that its blocks do: words,
// then calls.
func isRedundant(blocks []blockFields) bool {
	called := false
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use":
			called = true
		case b.Type != "text", called, wire.IsSet(b.Citations):
			return false
		}
	}
	return true
}

// pack is blocks as native ones, nil where they would add nothing.
func (p *Provider) pack(model string, blocks []json.RawMessage) json.RawMessage {
	pieces, ok := decode(blocks)
	if !ok || isRedundant(pieces) {
		return nil
	}
	data, err := json.Marshal(native{Host: p.host, Model: model, Blocks: blocks})
	if err != nil {
		return nil // a block that is no JSON is not kept
	}
	return data
}

func decode(blocks []json.RawMessage) ([]blockFields, bool) {
	pieces := make([]blockFields, len(blocks))
	for i, raw := range blocks {
		if json.Unmarshal(raw, &pieces[i]) != nil || pieces[i].Type == "" {
			return nil, false
		}
	}
	return pieces, true
}

// unpack returns m's native blocks if they are of this provider, host and
// model, and still say what m says: a message that was changed since (a new
// version, a call cut from a view) has its fields sent instead.
func (p *Provider) unpack(m *convo.Message, model string) ([]blockFields, []json.RawMessage) {
	var n native
	if m.Provider != name || len(m.Native) == 0 || json.Unmarshal(m.Native, &n) != nil {
		return nil, nil
	}
	pieces, ok := decode(n.Blocks)
	if !ok || n.Host != p.host || n.Model != model {
		return nil, nil
	}
	var text strings.Builder
	calls := slices.Clone(m.Calls)
	for _, b := range pieces {
		switch {
		case b.Type == "text":
			text.WriteString(b.Text)
		case b.Type != "tool_use":
		case len(calls) == 0 || calls[0].Name != b.Name || !sameArguments(calls[0].Arguments, b.Input):
			return nil, nil
		default:
			calls = calls[1:]
		}
	}
	if text.String() != m.Text || len(calls) > 0 {
		return nil, nil
	}
	return pieces, n.Blocks
}

// sameArguments says that a call's arguments are a block's input; a journal may have
// changed the order of the latter's keys.
func sameArguments(arguments string, input json.RawMessage) bool {
	var a, b any
	if json.Unmarshal(llm.NormalizeArguments(arguments), &a) != nil || json.Unmarshal(llm.NormalizeArguments(string(input)), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}
