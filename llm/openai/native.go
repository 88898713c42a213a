package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/vendorapi"
)

// native is the content of Message.Native: blocks of an answer that only the server that made them can read, and
// which provider, host, API and model they are from.
type native struct {
	API   string `json:"api"`
	Host  string `json:"host"`
	Model string `json:"model"`
	// Items are the unchanged output items of a Responses answer.
	Items []json.RawMessage `json:"items,omitempty"`
	// Reasoning is a Chat answer's reasoning_content, which some servers require while its calls are being answered.
	Reasoning string `json:"reasoning_content,omitempty"`
}

// item has the fields of an output item that Weir reads.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Encrypted string          `json:"encrypted_content"`
	Content   []itemPart      `json:"content"`
	Summary   []itemPart      `json:"summary"`
}

type itemPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

func (i item) words() string {
	var b strings.Builder
	for _, c := range i.Content {
		b.WriteString(c.Text + c.Refusal)
	}
	return b.String()
}

func (i item) refuses() bool {
	return slices.ContainsFunc(i.Content, func(c itemPart) bool { return c.Type == "refusal" })
}

func (i item) thoughts() string {
	parts := i.Summary
	if len(parts) == 0 {
		parts = i.Content
	}
	texts := make([]string, len(parts))
	for n, c := range parts {
		texts[n] = c.Text
	}
	return strings.Join(texts, "\n\n")
}

func (i item) call() convo.Call {
	return convo.Call{ID: i.CallID, Name: i.Name, Arguments: vendorapi.ScalarText(i.Arguments)}
}

// keep encodes items as native blocks. It returns nil if the server would refuse them: reasoning without its
// encrypted content cannot be read back by a server that stored nothing, nor can what follows it.
func (p *Provider) keep(model string, items []json.RawMessage) json.RawMessage {
	for _, raw := range items {
		var i item
		if json.Unmarshal(raw, &i) != nil {
			return nil
		}
		switch i.Type {
		case "reasoning":
			if i.Encrypted == "" {
				return nil
			}
		case "message", "function_call":
			if i.Status == "incomplete" || i.Status == "in_progress" {
				return nil
			}
		default:
			return nil
		}
	}
	if len(items) == 0 {
		return nil
	}
	return p.pack(native{API: Responses, Host: p.host, Model: model, Items: items})
}

func (p *Provider) pack(n native) json.RawMessage {
	data, err := json.Marshal(n)
	if err != nil {
		return nil // an item that is not JSON is dropped
	}
	return data
}

// unpack returns m's native blocks if they are from this provider, host, API and model. Others are dropped, because
// the message's own fields have the same content.
func (p *Provider) unpack(m *convo.Message, model string) (native, bool) {
	var n native
	if m.Provider != name || len(m.Native) == 0 || json.Unmarshal(m.Native, &n) != nil {
		return native{}, false
	}
	return n, n.API == p.api && n.Host == p.host && n.Model == model
}

// items returns m's output items, to be sent back unchanged. The items of a message that was changed since (a new
// version, a call cut from a view) are dropped. So are items whose id the server would refuse: one of another kind,
// or one that an earlier item has.
func (p *Provider) items(m *convo.Message, model string, sent map[string]bool) []json.RawMessage {
	n, ok := p.unpack(m, model)
	if !ok {
		return nil
	}
	var (
		text  strings.Builder
		calls []convo.Call
		ids   = map[string]bool{}
	)
	for _, raw := range n.Items {
		var i item
		if json.Unmarshal(raw, &i) != nil || !i.identified() || sent[i.ID] || ids[i.ID] {
			return nil
		}
		ids[i.ID] = i.ID != ""
		switch i.Type {
		case "message":
			text.WriteString(i.words())
		case "function_call":
			calls = append(calls, i.call())
		}
	}
	if text.String() != m.Text || !slices.Equal(calls, m.Calls) {
		return nil
	}
	maps.Copy(sent, ids)
	return n.Items
}

// identified reports whether an item's id is valid for its kind, or is missing where that is allowed.
func (i item) identified() bool {
	switch i.Type {
	case "reasoning":
		return strings.HasPrefix(i.ID, "rs_")
	case "message":
		return i.ID == "" || strings.HasPrefix(i.ID, "msg_")
	case "function_call":
		return i.ID == "" || strings.HasPrefix(i.ID, "fc_")
	}
	return false
}
