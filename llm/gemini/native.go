package gemini

import (
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/convo"
)

// native is the content of Message.Native: the parts of an answer with their signatures, which only the model that
// made them can read, and which provider, host, model and API they are from.
type native struct {
	API   string `json:"api"`
	Host  string `json:"host"`
	Model string `json:"model"`
	// Parts are those of a GenerateContent answer.
	Parts []nativePart `json:"parts,omitempty"`
	// Steps are those of an interaction.
	Steps []nativePart `json:"steps,omitempty"`
}

// nativePart is one part or step of an answer. Exactly one of Text, Call, Media and Sealed determines its kind. The
// arguments are text, because a journal need not keep the order of an object.
type nativePart struct {
	Text *string `json:"text,omitempty"`
	// Thought marks text that is reasoning.
	Thought bool        `json:"thought,omitempty"`
	Call    *nativeCall `json:"call,omitempty"`
	// Media is the number of the message's part, from 1.
	Media int `json:"media,omitempty"`
	// Sealed is a thought of an interaction that consists only of its signature.
	Sealed    bool   `json:"sealed,omitempty"`
	Signature string `json:"signature,omitempty"`
}

type nativeCall struct {
	// ID is the vendor's; it may be missing.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Args string `json:"args"`
}

func (p *Provider) pack(n native) json.RawMessage {
	n.Host = p.host
	return mustMarshal(n)
}

// unpack returns m's native blocks if they are from this provider, host, model and API. Others are dropped, because
// the message's own fields have the same content.
func (p *Provider) unpack(m *convo.Message, api, model string) (native, bool) {
	var n native
	if m.Provider != name || len(m.Native) == 0 || json.Unmarshal(m.Native, &n) != nil {
		return native{}, false
	}
	return n, n.API == api && n.Host == p.host && n.Model == model
}

// partsMatch reports whether the parts still equal m. The parts of a message that was changed since (a new version, a
// call cut from a view) are dropped.
func partsMatch(parts []nativePart, m *convo.Message) bool {
	var (
		text  strings.Builder
		calls int
		media int
	)
	for _, part := range parts {
		switch {
		case part.Call != nil:
			if calls == len(m.Calls) {
				return false
			}
			c := m.Calls[calls]
			calls++
			if part.Call.Name != c.Name || part.Call.Args != c.Arguments || (part.Call.ID != "" && part.Call.ID != c.ID) {
				return false
			}
		case part.Media > 0:
			media++
			if part.Media != media || media > len(m.Parts) {
				return false
			}
		case part.Text != nil && !part.Thought:
			text.WriteString(*part.Text)
		}
	}
	return text.String() == m.Text && calls == len(m.Calls) && media == len(m.Parts)
}

// verbatim returns m as the model sent it, and the ids of its calls; false if it has to be converted from its fields.
// A thought is sent only with its signature, because it would be read as text without it.
func (p *Provider) verbatim(m *convo.Message, model string) ([]json.RawMessage, []string, bool) {
	n, ok := p.unpack(m, apiGenerate, model)
	if !ok || len(n.Parts) == 0 || !partsMatch(n.Parts, m) {
		return nil, nil, false
	}
	var (
		parts []json.RawMessage
		ids   []string
	)
	for _, part := range n.Parts {
		switch {
		case part.Call != nil:
			ids = append(ids, part.Call.ID)
			parts = append(parts, callPart(part.Call.ID, part.Call.Name, part.Call.Args, part.Signature))
		case part.Media > 0:
			raw, err := p.mediaPart(m.Parts[part.Media-1], part.Signature)
			if err != nil {
				return nil, nil, false
			}
			parts = append(parts, raw)
		case part.Text != nil && (part.Signature != "" || (!part.Thought && *part.Text != "")):
			parts = append(parts, mustMarshal(apiPart{Text: part.Text, Thought: part.Thought, Signature: part.Signature}))
		}
	}
	return parts, ids, true
}
