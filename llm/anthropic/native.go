package anthropic

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// native is the content of Message.Native: all blocks of an answer in order, and which provider, host and model
// generated them.
type native struct {
	Host   string            `json:"host"`
	Model  string            `json:"model"`
	Blocks []json.RawMessage `json:"blocks"`
}

// blockFields has the fields of a content block that Weir reads.
type blockFields struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	// A text with citations says more than its text field.
	Citations json.RawMessage `json:"citations"`
}

func (p blockFields) thinks() bool { return p.Type == "thinking" || p.Type == "redacted_thinking" }

// isRedundant reports whether a message's own fields contain everything that its blocks do: text, then calls.
func isRedundant(blocks []blockFields) bool {
	called := false
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use":
			called = true
		case b.Type != "text", called, vendorapi.IsSet(b.Citations):
			return false
		}
	}
	return true
}

// pack encodes blocks as native ones, nil if they are redundant.
func (p *Provider) pack(model string, blocks []json.RawMessage) json.RawMessage {
	pieces, ok := decode(blocks)
	if !ok || isRedundant(pieces) {
		return nil
	}
	data, err := json.Marshal(native{Host: p.host, Model: model, Blocks: blocks})
	if err != nil {
		return nil // a block that is not JSON is dropped
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

// unpack returns m's native blocks if they are from this provider, host and model, and still equal the message. For a
// message that was changed since (a new version, a call cut from a view) the fields are sent instead.
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

// sameArguments reports whether a call's arguments equal a block's input. A journal may have changed the order of the
// input's keys.
func sameArguments(arguments string, input json.RawMessage) bool {
	var a, b any
	if json.Unmarshal(llm.NormalizeArguments(arguments), &a) != nil || json.Unmarshal(llm.NormalizeArguments(string(input)), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}
